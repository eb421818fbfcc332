"""Zero-copy gather: a kernel reads rows from locked host memory by unified addresses."""

from __future__ import annotations

import time
from abc import abstractmethod

import torch
from torch import Tensor

from gnnbench.core.counters import LOCK_TIME, MAPPING_SHARE, Metric
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.base import TableStore, in_chunks
from gnnbench.features.policies.policy import Footprint
from gnnbench.kernels.access import ELEMENT_BYTES, ELEMENTWISE, PAGE_ORDERED, READERS
from gnnbench.kernels.features import gather_once, gather_zero_copy
from gnnbench.kernels.locked import REGISTERED, LockedTensor


class LockedRows(TableStore):
    """Rows of a locked table, read over the link by the kernel of ``rows``.

    The table is locked in the run's shared-memory cache, or in a copy (``LockedTensor``).
    ``memory`` is one of ``gnnbench.kernels.locked.MEMORIES``. Raises ``HostMemoryError`` if host
    memory cannot be locked.
    """

    def __init__(self, job: Job, memory: str = REGISTERED) -> None:
        super().__init__(job)
        begin = time.perf_counter()
        self._table = LockedTensor(job.graph.features, job.device, "features", memory)
        self._seconds = time.perf_counter() - begin

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Return the seconds of locking and the GPU memory of the mapping."""
        share = self._table.mapping_share
        return {LOCK_TIME: self._seconds} | ({} if share is None else {MAPPING_SHARE: share})

    @property
    def table(self) -> Tensor:
        """The locked table."""
        return self._table.tensor

    @abstractmethod
    def rows(self, table: Tensor, ids: Tensor) -> Tensor:
        """``table[ids]`` on the device of the ids."""

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        self.count(ids.numel(), "zero_copy")
        return self.rows(self.table, ids)

    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Copy over the link by pages, whichever kernel reads batches."""
        distinct = torch.zeros(1, dtype=torch.int64, device=out.device)
        for chunk, chunk_ids in in_chunks(ids, out, self._row_bytes):
            gather_once(self.table, [chunk_ids.to(out.device)], distinct, chunk)

    def copy_all(self, out: Tensor) -> None:
        """Copy by the copy engine, which reads contiguous memory faster than a kernel."""
        out.copy_(self.table, non_blocking=True)

    def close(self) -> None:
        """Unlock the table after all GPU reads, and free a copy."""
        self._table.close()


class ZeroCopyGather(LockedRows):
    """Zero-copy gather by gnnbench's kernel.

    ``access`` is one of ``gnnbench.kernels.access.ACCESSES``; ``blocks`` blocks of 1024 threads
    read by pages. Raises ``UnsupportedError`` for elementwise access to rows that are no multiple
    of 4 bytes.
    """

    def __init__(
        self,
        job: Job,
        access: str = PAGE_ORDERED,
        memory: str = REGISTERED,
        blocks: int = READERS,
    ) -> None:
        table = job.graph.features
        row_bytes = table.shape[1] * table.element_size()
        if access in ELEMENTWISE and row_bytes % ELEMENT_BYTES:
            raise UnsupportedError(
                f"features 'uva': access={access} loads {ELEMENT_BYTES} bytes per thread, and rows"
                f" have {row_bytes} bytes, no multiple of it; give access=naive or aligned"
            )
        super().__init__(job, memory)
        self.access, self.blocks = access, blocks

    def rows(self, table: Tensor, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """``table[ids]``, in ``out`` or in new memory."""
        return gather_zero_copy(table, ids, self.access, blocks=self.blocks, out=out)

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Gather into ``out``."""
        ids = batch.input_nodes
        self.count(ids.numel(), "zero_copy")
        self.rows(self.table, ids, out)
        return True
