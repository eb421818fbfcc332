"""Zero-copy: a kernel reads the rows out of locked host memory by unified addresses."""

from __future__ import annotations

import time

from torch import Tensor

from gnnbench.cache.policy import Footprint
from gnnbench.ops.access import PAGE_ORDERED, READERS
from gnnbench.ops.features import gather_zero_copy
from gnnbench.ops.locked import REGISTERED, LockedTensor
from gnnbench.stages.counts import LOCK_TIME, Measure
from gnnbench.stages.features.base import RowStore
from gnnbench.stages.job import Job


class ZeroCopyGather(RowStore):
    """Rows over the link. Raises ``HostMemoryError`` where the host's memory cannot be locked.

    ``access`` is one of ``gnnbench.ops.access.ACCESSES``, ``memory`` one of
    ``gnnbench.ops.locked.MEMORIES``; ``blocks`` of 1024 threads read page by page, for whoever
    reads this table.
    """

    def __init__(
        self,
        job: Job,
        access: str = PAGE_ORDERED,
        memory: str = REGISTERED,
        blocks: int = READERS,
    ) -> None:
        super().__init__(job)
        self.access, self.blocks = access, blocks
        begin = time.perf_counter()
        self._table = LockedTensor(job.graph.features, job.device, "features", memory)
        self._seconds = time.perf_counter() - begin

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """The seconds that locking took."""
        return {LOCK_TIME: self._seconds}

    @property
    def table(self) -> Tensor:
        """The locked table."""
        return self._table.tensor

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        self.count(ids.numel(), "zero_copy")
        return gather_zero_copy(self.table, ids, self.access, blocks=self.blocks)

    def close(self) -> None:
        """Unlock and free the table."""
        self._table.close()
