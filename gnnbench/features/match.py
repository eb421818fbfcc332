"""Match (FastGL, section 4.1): fetches only rows that the previous batch does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.features.base import FallbackStore, RowStore
from gnnbench.features.cache import StaticCache
from gnnbench.features.host import HostGather
from gnnbench.features.ring import RowRing
from gnnbench.features.single_pass import (
    CachedSinglePassGather,
    HostSinglePassGather,
    SinglePassGather,
    single_pass_gather,
)
from gnnbench.kernels.lookup import IdLookup


class MatchStore(FallbackStore, RowStore):
    """Reuses rows of the previous batch; the fallback fetches the others.

    The previous batch's rows stay on the device and must not be modified. Two batches of rows exist
    at a time, as without Match. If a GPU reads the table page by page, kernels gather in one pass
    (``SinglePassGather``), also where a static cache is between Match and the table
    (``CachedSinglePassGather``); so does a CPU (``HostSinglePassGather``). Otherwise the host reads
    the numbers of hits and misses.
    """

    overlaps = True

    def __init__(self, job: Job, fallback: RowStore) -> None:
        super().__init__(job, fallback)
        self._lookup = IdLookup(job.graph.num_nodes, job.device)
        self._last: Tensor | None = None
        self._single_pass: SinglePassGather | CachedSinglePassGather | HostSinglePassGather | None
        self._single_pass = single_pass_gather(self, fallback, "reused")
        if type(fallback) is HostGather:
            ring = RowRing(job, job.device, max(job.max_in_flight, 2))  # the last one is read, too
            self._single_pass = HostSinglePassGather(self, fallback, "reused", ring)
        elif isinstance(fallback, StaticCache) and fallback.page_gather is not None:
            source = fallback.page_gather
            self._single_pass = CachedSinglePassGather(self, fallback.cached, source)

    def forget(self) -> None:
        """Begin an epoch: the next batch reuses no rows."""
        super().forget()
        self._lookup.forget()
        self._last = None

    def missing_ids(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Ids of each batch that the previous batch does not have."""
        last: Tensor | None = None
        for ids in batches:
            yield ids if last is None else ids[~torch.isin(ids, last)]
            last = ids

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device; the next call reuses them."""
        ids = ids.to(self.job.device)
        if self._single_pass is not None:
            kept = self._no_rows if self._last is None else self._last
            try:
                self._last = self._single_pass.rows(kept, self._lookup, ids, remember=True)
            except BaseException:  # slots of some ids may be set without their rows
                self._lookup.remembered()
                self.forget()
                raise
            return self._last
        self._last = self._assembled(ids, self._lookup.find(ids), self._last)
        self._lookup.remember(ids)
        return self._last

    @property
    def _no_rows(self) -> Tensor:
        table = self.job.graph.features
        return torch.empty((0, table.shape[1]), dtype=table.dtype, device=self.job.device)

    def _assembled(self, ids: Tensor, slots: Tensor, last: Tensor | None) -> Tensor:
        """Rows of ``ids``: from ``last`` for ids with a slot, else from the fallback."""
        table = self.job.graph.features
        kept = slots >= 0
        missing, hits = (~kept).nonzero()[:, 0], kept.nonzero()[:, 0]
        rows = torch.empty((ids.numel(), table.shape[1]), dtype=table.dtype, device=self.job.device)
        if missing.numel():
            rows.index_copy_(0, missing, self._fallback.fetch(ids[missing]))
        if last is not None and hits.numel():
            rows.index_copy_(0, hits, last.index_select(0, slots[hits]))
        self.count(hits.numel(), "reused")
        return rows

    def close(self) -> None:
        """Free the rows, the look-up and the fallback."""
        self._last = self._single_pass = None
        super().close()
