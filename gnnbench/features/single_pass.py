"""Single-pass gather: cached rows from the device, misses from the host table."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gnnbench.features.base import FeatureStore
from gnnbench.features.host import HostGather
from gnnbench.features.ring import RowRing
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import PAGE_ORDERED
from gnnbench.kernels.features import gather_over, gather_over_cache, gather_over_out
from gnnbench.kernels.lookup import IdLookup


def page_gather(fallback: FeatureStore) -> ZeroCopyGather | None:
    """Return ``fallback`` if a GPU reads its table by pages, else None."""
    if isinstance(fallback, ZeroCopyGather) and fallback.access == PAGE_ORDERED:
        return fallback
    return None


def single_pass_gather(
    store: FeatureStore, fallback: FeatureStore, where: str
) -> SinglePassGather | None:
    """Create the single-pass gather of ``store``; None unless a GPU reads the table by pages."""
    source = page_gather(fallback)
    return None if source is None else SinglePassGather(store, source, where)


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


class CachedSinglePassGather:
    """Gathers rows of ``store`` on a GPU: of its previous result, of a cache, then of the table.

    ``cache()`` returns the cached rows and their look-up; the others are read by pages from the
    fallback's table. Neither the host nor a second kernel separates hits from misses. The
    store's counts (``reused``, ``cache``, ``zero_copy``) are settled when they are read.
    """

    def __init__(
        self,
        store: FeatureStore,
        cache: Callable[[], tuple[Tensor, IdLookup]],
        fallback: ZeroCopyGather,
    ) -> None:
        self._store, self._cache, self._fallback = store, cache, fallback
        self._hits = torch.zeros(2, dtype=torch.int64, device=store.job.device)
        self._requested = self._calls = 0
        store.job.counts.settled_by(self._settle)

    def rows(self, kept: Tensor, lookup: IdLookup, ids: Tensor, remember: bool) -> Tensor:
        """As ``SinglePassGather.rows``; ``remember`` must be true."""
        assert remember
        if lookup.last:
            lookup.forget()
        rows = gather_over_cache(
            self._fallback.table, (kept, lookup), self._cache(), ids, self._hits,
            blocks=self._fallback.blocks,
        )  # fmt: skip
        lookup.remembered()
        self._requested += ids.numel()
        self._calls += 1
        return rows

    def _settle(self) -> None:
        if self._calls:
            reused, cached = self._hits.tolist()
            self._hits.zero_()
            self._store.count(reused, "reused", self._calls)
            self._store.count(cached, "cache", self._calls)
            self._store.count(self._requested - reused - cached, "zero_copy", self._calls)
            self._requested = self._calls = 0


class HostSinglePassGather:
    """Gathers rows on a CPU: those that ``store`` has on path ``where``, others from the table.

    Results are in the buffers of ``ring``.
    """

    def __init__(
        self, store: FeatureStore, fallback: HostGather, where: str, ring: RowRing
    ) -> None:
        self._store, self._fallback, self._where, self._ring = store, fallback, where, ring

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
        self._store.count(hits, self._where)
        if hits < ids.numel() or self._where == "cache":  # which counts a call for each batch
            self._fallback.count(ids.numel() - hits, "host")
        return rows
