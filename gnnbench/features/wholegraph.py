"""WholeGraph's feature store: its gather from a table in WholeMemory."""

from __future__ import annotations

import time

from torch import Tensor

from gnnbench.core.counters import LOCK_TIME, Metric
from gnnbench.core.job import Job
from gnnbench.features.allocation import allocating
from gnnbench.features.base import RowStore
from gnnbench.features.policies.policy import Footprint
from gnnbench.kernels.wholegraph_import import WholeMemory


class WholeRows(RowStore):
    """``WholeMemoryTensor.gather`` from a copy of the table, in locked host memory or the GPU's.

    Raises ``HostMemoryError`` or ``GpuMemoryError`` if the copy does not fit.
    """

    def __init__(self, job: Job, table: str, memory: str) -> None:
        super().__init__(job)
        self._whole = WholeMemory.share()
        self._where = "device" if table == "gpu" else "zero_copy"
        location = "cuda" if table == "gpu" else "cpu"
        setting = f"{job.cell.system}.features.memory"
        features, begin = job.graph.features, time.perf_counter()
        remedy = "WholeGraph needs a copy of its own; take a smaller graph, or features=uva"
        with allocating("WholeGraph's table", features.numel() * features.element_size(), remedy):
            self._table = self._whole.store(features, memory, location, setting)
        self._seconds = time.perf_counter() - begin

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Return the seconds of allocating and filling the memory."""
        return {LOCK_TIME: self._seconds}

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        self.count(ids.numel(), self._where)
        return self._table.gather(ids.to(self.job.device))

    def close(self) -> None:
        """Destroy the table; the last stage destroys WholeGraph's state."""
        self._whole.free(self._table)
        self._whole.close()
