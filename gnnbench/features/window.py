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
from gnnbench.features.base import FallbackStore, RowStore
from gnnbench.features.ring import RowRing
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import PAGE_ORDERED
from gnnbench.kernels.features import gather_once
from gnnbench.kernels.id_set import IdSet, union_ids


class WindowRows(ABC):
    """The rows of a window's batches; ``nbytes`` is their memory, with unused buffer capacity."""

    nbytes: int

    @abstractmethod
    def rows(self, nth: int) -> Tensor:
        """Rows ``[n, feature_dim]`` of the ``nth`` batch."""


class UnionRows(WindowRows):
    """Each row of the union once; rows of a batch are copied from it."""

    def __init__(self, union: IdSet, rows: Tensor, batches: Sequence[Tensor]) -> None:
        self._union, self._rows, self._batches = union, rows, batches
        self.nbytes = union.nbytes + rows.untyped_storage().nbytes()

    def rows(self, nth: int) -> Tensor:
        """A copy of the batch's rows."""
        return self._union.gather(self._rows, self._batches[nth])


class BatchRows(WindowRows):
    """Rows of all batches, one batch after the other."""

    def __init__(self, rows: Tensor, batches: Sequence[Tensor]) -> None:
        self._batches = rows.split([ids.numel() for ids in batches])
        self.nbytes = rows.untyped_storage().nbytes()

    def rows(self, nth: int) -> Tensor:
        """A view of the batch's rows."""
        return self._batches[nth]


class WindowStore(FallbackStore):
    """Fetches the union of a window's nodes from the fallback with the first batch.

    The rows are kept until the next window. ``holds_batches``: one kernel reads each row once and
    writes it for every batch that has it; the host does not wait, and only the device knows the
    number of rows read, which is counted on request. This requires a ``ZeroCopyGather`` that reads
    by pages. Otherwise the fallback fetches the union in ascending order of ids, and each batch's
    rows are copied from it; on a GPU the host then waits once a window for the size of the union.
    A batch that was not announced is a window by itself.

    Rows of batches are in a ring with one buffer for each window whose results must stay valid.
    A batch that was not announced has its own buffer.
    """

    overlaps = True

    def __init__(
        self, job: Job, fallback: RowStore, window: int, holds_batches: bool = False
    ) -> None:
        super().__init__(job, fallback)
        self.window = window
        self._window: list[Batch] = []
        self._window_rows: WindowRows | None = None
        self._most_bytes = self._requested = self._calls = 0
        self._page_gather: ZeroCopyGather | None = None
        self._ring: RowRing | None = None
        if holds_batches:
            assert isinstance(fallback, ZeroCopyGather) and fallback.access == PAGE_ORDERED
            self._page_gather = fallback
            self._distinct = torch.zeros(1, dtype=torch.int64, device=job.device)
            # A window's last result must stay valid for job.max_in_flight - 1 more calls.
            self._ring = RowRing(job, job.device, 1 + -(-(job.max_in_flight - 1) // window))
        job.counts.settled_by(self._settle)

    def forget(self) -> None:
        """Begin an epoch: no batch is announced."""
        super().forget()
        self._set_window([])

    def announce(self, batches: Sequence[Batch]) -> None:
        """Receive the next batches; their rows are fetched with the first of them."""
        self._set_window(batches)

    def _set_window(self, batches: Sequence[Batch]) -> None:
        self._window, self._window_rows = list(batches), None

    def missing_ids(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The union of each window's ids."""
        remaining = iter(batches)
        while window := list(islice(remaining, self.window)):
            yield union_ids(window, self.job.graph.num_nodes).ids

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        announced = any(batch is one for one in self._window)
        if not announced:
            self._set_window([batch])
        if self._window_rows is None:
            ids = [one.input_nodes.to(self.job.device) for one in self._window]
            self._window_rows = self._fetch(ids, announced)
            self._most_bytes = max(self._most_bytes, self._window_rows.nbytes)
        nth = next(nth for nth, one in enumerate(self._window) if one is batch)
        return self._window_rows.rows(nth)

    def _fetch(self, batches: Sequence[Tensor], announced: bool) -> WindowRows:
        requested = sum(ids.numel() for ids in batches)
        if self._page_gather is not None:
            assert self._ring is not None
            rows = self._ring.rows(requested) if announced else self._new_rows(requested)
            source = self._page_gather
            gather_once(source.table, batches, self._distinct, rows, source.blocks)
            self._requested += requested
            self._calls += 1
            return BatchRows(rows, batches)
        union = union_ids(batches, self.job.graph.num_nodes)
        self.count(requested - union.ids.numel(), "reused")
        return UnionRows(union, self._fallback.fetch(union.ids), batches)

    def _new_rows(self, rows: int) -> Tensor:
        table = self.job.graph.features
        return table.new_empty((rows, *table.shape[1:]), device=self.job.device)

    def _settle(self) -> None:
        if self._calls:
            read = int(self._distinct)
            self._distinct.zero_()
            self.count(read, "zero_copy", self._calls)
            self.count(self._requested - read, "reused", self._calls)
            self._requested = self._calls = 0
        if self._most_bytes:
            self.job.counts.add("features", WINDOW_BYTES, self._most_bytes)
            self._most_bytes = 0

    def close(self) -> None:
        """Free the rows and the fallback."""
        self._set_window([])
        self._ring = None
        super().close()
