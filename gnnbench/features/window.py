"""Rows of several batches fetched together, each row once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from gnnbench.core.counters import WINDOW_BYTES
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.base import Over, RowStore
from gnnbench.features.ring import RowRing
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import PAGE_ORDERED
from gnnbench.kernels.features import gather_once
from gnnbench.kernels.id_set import IdSet, union_ids


class Held(ABC):
    """The rows of a window's batches; ``nbytes`` of memory, with the room that a buffer has."""

    nbytes: int

    @abstractmethod
    def rows(self, nth: int) -> Tensor:
        """Rows ``[n, feature_dim]`` of the ``nth`` batch."""


class UnionRows(Held):
    """Each row of the union once; a batch's are copied out of it."""

    def __init__(self, union: IdSet, rows: Tensor, batches: Sequence[Tensor]) -> None:
        self._union, self._rows, self._batches = union, rows, batches
        self.nbytes = union.nbytes + rows.untyped_storage().nbytes()

    def rows(self, nth: int) -> Tensor:
        """A copy."""
        return self._union.gather(self._rows, self._batches[nth])


class BatchRows(Held):
    """Each batch's rows as they are served."""

    def __init__(self, rows: Tensor, batches: Sequence[Tensor]) -> None:
        self._parts = rows.split([ids.numel() for ids in batches])
        self.nbytes = rows.untyped_storage().nbytes()

    def rows(self, nth: int) -> Tensor:
        """A view."""
        return self._parts[nth]


class WindowStore(Over):
    """The union of a window's nodes from the store ``under``, fetched with the first batch.

    It is held until the next window's. ``holds_batches``: as the rows of all batches, each row read
    once and written wherever it is wanted, by one kernel that no host waits for; how many rows were
    read is known to the device alone, and counted when it is asked. That takes a ``ZeroCopyGather``
    that reads page by page. Else any store fetches the union, in ascending order of ids, and each
    batch's rows are copied out of it; on a GPU the host then waits once a window, for the size of
    the union. A batch that was not announced is a window by itself.

    Rows of batches lie in buffers that take turns window by window: as many as the windows are of
    which results must stay valid. Those of a batch that was not announced lie apart.
    """

    overlaps = True

    def __init__(self, job: Job, under: RowStore, window: int, holds_batches: bool = False) -> None:
        super().__init__(job, under)
        self.window = window
        self._waiting: list[Batch] = []
        self._held: Held | None = None
        self._most = self._asked = self._calls = 0
        self._once: ZeroCopyGather | None = None
        self._ring: RowRing | None = None
        if holds_batches:
            assert isinstance(under, ZeroCopyGather) and under.access == PAGE_ORDERED
            self._once = under
            self._distinct = torch.zeros(1, dtype=torch.int64, device=job.device)
            # The last of a window's results is to outlive job.held - 1 others.
            self._ring = RowRing(job, job.device, 1 + -(-(job.held - 1) // window))
        job.counts.settled_by(self._settle)

    def forget(self) -> None:
        """No batch is announced any more."""
        super().forget()
        self._expect([])

    def announce(self, batches: Sequence[Batch]) -> None:
        """Hear which batches are loaded next; their rows are fetched with the first of them."""
        self._expect(batches)

    def _expect(self, batches: Sequence[Batch]) -> None:
        self._waiting, self._held = list(batches), None

    def lacking(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The union of each window's."""
        rest = iter(batches)
        while window := list(islice(rest, self.window)):
            yield union_ids(window, self.job.graph.num_nodes).ids

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        announced = any(batch is one for one in self._waiting)
        if not announced:
            self._expect([batch])
        if self._held is None:
            ids = [one.input_nodes.to(self.job.device) for one in self._waiting]
            self._held = self._fetched(ids, announced)
            self._most = max(self._most, self._held.nbytes)
        nth = next(nth for nth, one in enumerate(self._waiting) if one is batch)
        return self._held.rows(nth)

    def _fetched(self, batches: Sequence[Tensor], announced: bool) -> Held:
        asked = sum(ids.numel() for ids in batches)
        if self._once is not None:
            assert self._ring is not None
            rows = self._ring.rows(asked) if announced else self._apart(asked)
            once = self._once
            gather_once(once.table, batches, self._distinct, rows, once.blocks)
            self._asked += asked
            self._calls += 1
            return BatchRows(rows, batches)
        union = union_ids(batches, self.job.graph.num_nodes)
        self.count(asked - union.ids.numel(), "reused")
        return UnionRows(union, self._under.fetch(union.ids), batches)

    def _apart(self, rows: int) -> Tensor:
        table = self.job.graph.features
        return table.new_empty((rows, *table.shape[1:]), device=self.job.device)

    def _settle(self) -> None:
        if self._calls:
            read = int(self._distinct)
            self._distinct.zero_()
            self.count(read, "zero_copy", self._calls)
            self.count(self._asked - read, "reused", self._calls)
            self._asked = self._calls = 0
        if self._most:
            self.job.counts.add("features", WINDOW_BYTES, self._most)
            self._most = 0

    def close(self) -> None:
        """Free the rows, and what the store below took."""
        self._expect([])
        self._ring = None
        super().close()
