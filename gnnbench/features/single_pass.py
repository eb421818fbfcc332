"""Single-pass gather: cached rows from the device, misses from the host table."""

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


def single_pass_gather(
    store: FeatureStore, fallback: FeatureStore, where: str
) -> SinglePassGather | None:
    """Create the single-pass gather of ``store``; None unless a GPU reads the table by pages."""
    if isinstance(fallback, ZeroCopyGather) and fallback.access == PAGE_ORDERED:
        return SinglePassGather(store, fallback, where)
    return None


class SinglePassGather:
    """Gathers rows of ``store`` on a GPU; misses are read by pages from the fallback's table.

    The host does not wait. Only the device knows the number of hits; the store's counts (hits on
    path ``where``, misses as ``zero_copy``) are settled when they are read.
    """

    def __init__(self, store: FeatureStore, fallback: ZeroCopyGather, where: str) -> None:
        self._store, self._fallback, self._where = store, fallback, where
        self._hits = torch.zeros(1, dtype=torch.int64, device=store.job.device)
        self._requested = self._calls = 0
        store.job.counts.settled_by(self._settle)

    def rows(self, kept: Tensor, lookup: IdLookup, ids: Tensor, remember: bool) -> Tensor:
        """Rows ``[n, feature_dim]`` of ``ids``; ``kept`` are the cached rows.

        ``remember`` stores the positions of ``ids`` as slots for the next call.
        """
        if remember and lookup.last:
            lookup.forget()
        rows = gather_over(
            self._fallback.table, kept, lookup.slots, lookup.generations, lookup.generation, ids,
            self._hits, remember, blocks=self._fallback.blocks,
        )  # fmt: skip
        if remember:
            lookup.remembered()
        self._requested += ids.numel()
        self._calls += 1
        return rows

    def _settle(self) -> None:
        if self._calls:
            hits = int(self._hits)
            self._hits.zero_()
            self._store.count(hits, self._where, self._calls)
            self._store.count(self._requested - hits, "zero_copy", self._calls)
            self._requested = self._calls = 0


class HostSinglePassGather:
    """Gathers rows on a CPU: from the previous result where possible, else from the table.

    Results are in a ring of buffers; the next call reads the previous one.
    """

    def __init__(self, store: FeatureStore, fallback: HostGather) -> None:
        self._store, self._fallback = store, fallback
        job = store.job
        self._ring = RowRing(job, job.device, max(job.max_in_flight, 2))

    def rows(self, kept: Tensor, lookup: IdLookup, ids: Tensor, remember: bool) -> Tensor:
        """As ``SinglePassGather.rows``."""
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
            self._fallback.count(ids.numel() - hits, "host")
        return rows
