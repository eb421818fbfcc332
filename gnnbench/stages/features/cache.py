"""A static cache before another store (GNNLab, EuroSys 2022; PaGraph, SoCC 2020): the hottest rows
lie in the device's memory, what a batch misses is fetched from where the table is.

On a CPU the cache is a second table in memory: its counts are facts, its times are not a GPU's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from gnnbench.cache.policy import OPTIMAL, Footprint, Policy, cached_rows, hotness, ranking
from gnnbench.cache.trace import RATIOS, Trace
from gnnbench.minibatch import Batch
from gnnbench.ops.features import gather
from gnnbench.stages.counts import CACHE_ROWS, FILL_TIME, HOTNESS_TIME, RANK_TIME, Measure
from gnnbench.stages.features.base import FeatureStore, RowStore
from gnnbench.stages.features.over import OverKept
from gnnbench.stages.features.ring import RowRing
from gnnbench.stages.features.uva import ZeroCopyGather
from gnnbench.stages.job import Job
from gnnbench.stages.lookup import IdLookup

CURVE = tuple(percent / 100 for percent in range(101))
CHUNK_BYTES = 1 << 26  # of the rows that are gathered at a time to fill the cache


class CachedRows(FeatureStore):
    """Rows of the policy's first ``ratio`` of all nodes from the cache, others from ``misses``.

    ``optimal`` holds nothing until it is told an epoch. Raises ``torch.OutOfMemoryError`` where the
    cache does not fit.
    """

    def __init__(self, job: Job, policy: Policy, ratio: float, misses: RowStore) -> None:
        super().__init__(job)
        self._policy, self._misses = policy, misses
        self._table = job.graph.features
        nodes = job.graph.num_nodes
        shape = (cached_rows(ratio, nodes), *self._table.shape[1:])
        self._cache = torch.empty(shape, dtype=self._table.dtype, device=job.device)
        self._lookup = IdLookup(nodes, job.device)
        self._over: OverKept | None = None
        if isinstance(misses, ZeroCopyGather):
            self._over = OverKept(self, misses, "cache")
        self._ring = RowRing(job, job.device)
        self.ranking: Tensor | None = None  # int64 [num_nodes] on the host, those cached in front

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Rank and fill; the seconds of each part."""
        if self._policy.name == OPTIMAL:
            return {CACHE_ROWS: self._cache.shape[0]}
        return self._refill(footprint, ())

    def foresee(self, footprint: Footprint, epoch: int) -> None:
        """Fill the cache of ``optimal`` for ``epoch`` by its recorded footprint, before it runs.

        Other policies know nothing of the epochs that are measured.
        """
        if self._policy.name == OPTIMAL:
            self._refill(footprint, (epoch,))

    def curves(self, footprint: Footprint, epoch: int) -> list[dict[str, Any]]:
        """Exact hit ratios of this policy at every hundredth and of SIEVE at every tenth."""
        self.foresee(footprint, epoch)
        assert self.ranking is not None, "prepared before"
        trace = Trace.record(self.job.graph.num_nodes, footprint(epoch))
        found = zip(CURVE, trace.hit_ratios(self.ranking, CURVE), strict=True)
        dynamic = zip(RATIOS, trace.sieve_hit_ratios(RATIOS), strict=True)
        batch_bytes = trace.requests * self._row_bytes / max(1, len(trace.batches))
        return [
            {
                "policy": policy, "ratio": ratio, "hit_ratio": hits,
                "missed_bytes": (1 - hits) * batch_bytes,
            }
            for policy, points in ((self._policy.text, found), ("sieve", dynamic))
            for ratio, hits in points
        ]  # fmt: skip

    def _refill(self, footprint: Footprint, epochs: Iterable[int]) -> dict[Measure, float]:
        begin = time.perf_counter()
        graph, seed = self.job.graph, self.job.cell.seed
        counted = hotness(self._policy, graph, footprint, epochs)
        known = time.perf_counter()
        self.ranking = ranking(counted, graph.num_nodes, seed)
        ranked = time.perf_counter()
        self._fill(self.ranking[: self._cache.shape[0]])
        filled = time.perf_counter()
        return {
            HOTNESS_TIME: known - begin,
            RANK_TIME: ranked - known,
            FILL_TIME: filled - ranked,
            CACHE_ROWS: self._cache.shape[0],
        }

    def _fill(self, nodes: Tensor) -> None:
        rows = max(1, CHUNK_BYTES // max(1, self._row_bytes))
        for part, ids in zip(self._cache.split(rows), nodes.split(rows), strict=True):
            part.copy_(gather(self._table, ids))
        self._lookup.remember(nodes.to(self._cache.device))
        if self._cache.is_cuda:
            torch.cuda.synchronize(self._cache.device)  # the seconds are to be those of the work

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device.

        Where a GPU reads the table itself, kernels do it in one pass (``OverKept``). Else the slow,
        obvious way: the split waits for the device, and each row is written twice.
        """
        ids = batch.input_nodes.to(self._cache.device)  # a foreign sampler's may be on the host
        if self._over is not None:
            return self._over.rows(self._cache, self._lookup, ids, remember=False)
        slots = self._lookup.find(ids)
        hit, missed = (torch.nonzero(m).squeeze(1) for m in (slots >= 0, slots < 0))
        rows = self._ring.rows(ids.numel())
        self.count(hit.numel(), "cache")
        rows.index_copy_(0, hit, gather(self._cache, slots[hit]))
        rows.index_copy_(0, missed, self._misses.fetch(ids[missed]))
        return rows

    def close(self) -> None:
        """Free the cache, and what fetches its misses."""
        self._misses.close()
        del self._cache, self._lookup, self._ring, self._over
