"""Rows of a batch over those that are kept on the device, in one pass."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.features.base import FeatureStore
from gnnbench.features.host import HostGather
from gnnbench.features.ring import RowRing
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import PAGE_ORDERED
from gnnbench.kernels.features import gather_over, gather_over_out
from gnnbench.kernels.lookup import IdLookup


def in_one_pass(store: FeatureStore, under: FeatureStore, where: str) -> OverKept | None:
    """The one pass of ``store`` over ``under``; None where a GPU does not read a table page by
    page."""
    if isinstance(under, ZeroCopyGather) and under.access == PAGE_ORDERED:
        return OverKept(store, under, where)
    return None


class OverKept:
    """Serves ``store``'s rows: what is not kept is read page by page out of ``under``'s table, and
    no host waits for it.

    How many rows were kept is known to the device alone; the store's counts (``where`` kept rows
    are, and ``zero_copy``) are settled when they are read.
    """

    def __init__(self, store: FeatureStore, under: ZeroCopyGather, where: str) -> None:
        self._store, self._under, self._where = store, under, where
        self._hits = torch.zeros(1, dtype=torch.int64, device=store.job.device)
        self._asked = self._calls = 0
        store.job.counts.settled_by(self._settle)

    def rows(self, kept: Tensor, lookup: IdLookup, ids: Tensor, remember: bool) -> Tensor:
        """Rows ``[n, feature_dim]`` of ``ids``; ``remember`` their places as slots of the next."""
        if remember and lookup.last:
            lookup.forget()
        rows = gather_over(
            self._under.table, kept, lookup.slots, lookup.generations, lookup.generation, ids,
            self._hits, remember, blocks=self._under.blocks,
        )  # fmt: skip
        if remember:
            lookup.remembered()
        self._asked += ids.numel()
        self._calls += 1
        return rows

    def _settle(self) -> None:
        if self._calls:
            hits = int(self._hits)
            self._hits.zero_()
            self._store.count(hits, self._where, self._calls)
            self._store.count(self._asked - hits, "zero_copy", self._calls)
            self._asked = self._calls = 0


class OverLast:
    """Serves rows on a CPU: those that the last result has out of it, others as ``under`` gathers.

    Results lie in buffers that take turns, one of which the next call reads.
    """

    def __init__(self, store: FeatureStore, under: HostGather) -> None:
        self._store, self._under = store, under
        job = store.job
        self._ring = RowRing(job, job.device, max(job.held, 2))

    def rows(self, kept: Tensor, lookup: IdLookup, ids: Tensor, remember: bool) -> Tensor:
        """As ``OverKept``'s."""
        if remember and lookup.last:
            lookup.forget()
        rows = self._ring.rows(ids.numel())
        hits = gather_over_out(
            self._store.job.graph.features, kept, lookup.slots, lookup.generations,
            lookup.generation, ids, rows, remember,
        )  # fmt: skip
        if remember:
            lookup.remembered()
        self._store.count(hits, "reused")
        if hits < ids.numel():
            self._under.count(ids.numel() - hits, "host")
        return rows
