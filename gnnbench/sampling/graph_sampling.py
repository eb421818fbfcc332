"""Setting and placed graph of a sampler, which is pickled as its arguments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.kernels.locked import LockedTensor
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.to_device import to_device
from gnnbench.sampling.setting import Setting

if TYPE_CHECKING:
    from typing import Self


class RebuiltFromArguments:
    """An object that is pickled as its constructor arguments and built anew from them.

    A copy in another process therefore shares no buffers with the original.
    """

    _built_with: tuple[tuple[object, ...], dict[str, object]]

    def __new__(cls, *arguments: object, **options: object) -> Self:
        """Create an object that remembers its constructor arguments."""
        instance = super().__new__(cls)
        instance._built_with = (arguments, options)
        return instance

    def __reduce__(self) -> tuple[partial[Self], tuple[object, ...]]:
        arguments, options = self._built_with
        return partial(type(self), **options), arguments


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


class GraphSampling(RebuiltFromArguments):
    """A checked ``setting``, and the graph's tensors on the sampling device."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._sampled_on = setting.sampled_on
        self._placed = PlacedGraph(setting)
        self._indptr, self._indices = self._placed.indptr, self._placed.indices
        self._pick, self._weights = self._placed.pick, self._placed.weights

    @property
    def pick(self) -> str:
        """Name of the pick function."""
        return self.setting.pick.name

    @property
    def frontier(self) -> str:
        """``cumulative`` or ``new``."""
        return self.setting.frontier

    @property
    def fanouts(self) -> tuple[int, ...]:
        """Neighbours per destination and hop, from the seeds outwards."""
        return self.setting.fanouts

    @property
    def device(self) -> torch.device:
        """The device that receives the blocks."""
        return self.setting.device

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``, on the sampling device."""
        return self._indptr

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``, on the sampling device."""
        return self._indices

    @property
    def weights(self) -> Tensor | None:
        """float ``[num_edges]`` in the order of ``indices``; None unless the law is
        ``weighted``."""
        return self._weights

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""
        return self._indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Edges of the graph."""
        return self._indices.numel()

    def close(self) -> None:
        """Unlock the graph's host memory; the sampler cannot be used afterwards."""
        self._placed.close()
