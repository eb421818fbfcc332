"""The whole feature table in device memory."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.allocation import allocating
from gnnbench.features.base import FeatureStore
from gnnbench.features.ring import RowRing
from gnnbench.kernels.features import gather
from gnnbench.kernels.to_device import to_device


class DeviceGather(FeatureStore):
    """Gather on the device. Raises ``GpuMemoryError`` if the table does not fit."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        table = job.graph.features
        remedy = "give -o SYSTEM.features=cache, or leave the table on the host"
        with allocating("the feature table", table.numel() * table.element_size(), remedy):
            self._table: Tensor | None = to_device(table, job.device)
        self._ring = RowRing(job, job.device)

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        return self._gather(batch.input_nodes, None)

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Gather into ``out``."""
        self._gather(batch.input_nodes, out)
        return True

    def _gather(self, ids: Tensor, out: Tensor | None) -> Tensor:
        assert self._table is not None
        self.count(ids.numel(), "device")
        return self.rows(self._table, ids, out)

    def rows(self, table: Tensor, ids: Tensor, out: Tensor | None) -> Tensor:
        """``table[ids]`` by gnnbench's kernel, in ``out`` or a buffer of the store."""
        return gather(table, ids, out=self._ring.rows(ids.numel()) if out is None else out)

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers."""
        return self._ring.reserve(rows)

    def close(self) -> None:
        """Free the table and the buffers."""
        self._table = None
        del self._ring
