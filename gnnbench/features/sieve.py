"""A cache that changes as batches are served, by SIEVE, as GraphBolt's users have it."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.counters import CACHE_ROWS, Measure
from gnnbench.core.job import Job
from gnnbench.features.base import RowStore
from gnnbench.features.cache import CacheStore
from gnnbench.features.policies.policy import Footprint
from gnnbench.features.policies.sieve import Sieve, in_order
from gnnbench.kernels.features import gather


class SieveCache(CacheStore):
    """Rows that were missed are kept, in the place of those that SIEVE evicts.

    A batch is looked up whole, then what it misses is inserted by ascending id, each id once: the
    order within a batch may be that of a sampler's threads. Empty when it is built; what a batch
    leaves is there for the next one, of the next epoch as well, and what the gate loads for the
    first. Batches must be loaded in the order in which they are run.

    The queue is kept by the host. On a GPU ids are looked up and rows are copied there, but the
    host reads which slots were found and which ids were missed, and so waits once a batch.
    """

    def __init__(self, job: Job, ratio: float | str, limit: int, under: RowStore) -> None:
        super().__init__(job, ratio, limit, under)
        self._sieve = Sieve(0)

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Nothing is known before the first batch."""
        below = super().prepare(footprint)
        self._take_memory()
        self._sieve = Sieve(self._rows)
        self._lookup.forget()
        return {**below, CACHE_ROWS: self._rows}

    def served(self, found: Tensor, missed: Tensor, rows: Tensor) -> None:
        """Mark what was found, keep what was missed as far as it has a slot at the end."""
        there, device = self._lookup, self._cache.device
        self._sieve.mark(found.cpu())
        ids = in_order(missed)
        slots, evicted = self._sieve.insert(ids)
        there.drop(evicted.to(device))
        kept = slots >= 0
        there.put(ids[kept].to(device), slots[kept].to(device))
        at = there.find(missed)
        some = (at >= 0).nonzero().squeeze(1)
        self._cache.index_copy_(0, at[some].long(), gather(rows, some))
