"""A dynamic cache with SIEVE eviction, as in GraphBolt."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.counters import CACHE_ROWS, Metric
from gnnbench.core.job import Job
from gnnbench.features.base import RowStore
from gnnbench.features.cache import CacheStore
from gnnbench.features.policies.policy import Footprint
from gnnbench.features.policies.sieve import Sieve, in_order
from gnnbench.kernels.features import gather


class SieveCache(CacheStore):
    """Caches missed rows in the slots that SIEVE evicts.

    A batch is looked up as a whole. Its misses are then inserted in ascending order of ids, each
    once, because the order within a batch depends on a sampler's threads. The cache starts empty
    and keeps its rows across batches, epochs and the gate. Batches must be loaded in the order in
    which they run.

    The queue is on the host. A GPU looks up ids and copies rows, but the host reads the hit slots
    and the missed ids, and so waits once a batch.
    """

    def __init__(self, job: Job, ratio: float | str, limit: int, fallback: RowStore) -> None:
        super().__init__(job, ratio, limit, fallback)
        self._sieve = Sieve(0)

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Allocate an empty cache."""
        measures = super().prepare(footprint)
        self._allocate_cache()
        self._sieve = Sieve(self._rows)
        self._lookup.forget()
        return {**measures, CACHE_ROWS: self._rows}

    def update(self, hit_slots: Tensor, missed: Tensor, rows: Tensor) -> None:
        """Mark hits as visited, and store the misses that have a slot after all insertions."""
        lookup, device = self._lookup, self._cache.device
        self._sieve.mark(hit_slots.cpu())
        ids = in_order(missed)
        slots, evicted = self._sieve.insert(ids)
        lookup.drop(evicted.to(device))
        kept = slots >= 0
        lookup.put(ids[kept].to(device), slots[kept].to(device))
        at = lookup.find(missed)
        some = (at >= 0).nonzero().squeeze(1)
        self._cache.index_copy_(0, at[some].long(), gather(rows, some))
