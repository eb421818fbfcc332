"""The graph's tensors, placed for sampling."""

from __future__ import annotations

from torch import Tensor

from gnnbench.kernels.locked import LockedTensor
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.to_device import to_device
from gnnbench.sampling.setting import Setting


class PlacedGraph:
    """Places the tensors that sampling reads according to ``setting.topology``.

    ``gpu`` copies them to the device, ``uva`` locks them in host memory, ``cpu`` keeps them.

    Raises ``HostMemoryError`` if host memory cannot be locked.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._locked: list[LockedTensor] = []
        self.indptr = self._place(setting.indptr, "indptr")
        self.indices = self._place(setting.indices, "indices")
        tables = tuple(self._place(table, "weights") for table in setting.pick.tables)
        self.pick = PickSpec(setting.pick.name, tables, setting.pick.walk)
        weights = setting.weights
        self.weights = None if weights is None else self._place(weights, "weights")

    def _place(self, tensor: Tensor, name: str) -> Tensor:
        if self._setting.topology != "uva":
            return to_device(tensor, self._setting.sampled_on)
        self._locked.append(LockedTensor(tensor.cpu(), self._setting.device, name))
        return self._locked[-1].tensor

    def close(self) -> None:
        """Unlock the host memory; the tensors cannot be used afterwards."""
        for locked in self._locked:
            locked.close()
        self._locked = []
