"""SIEVE eviction (Zhang et al., NSDI 2024), as in GraphBolt's feature caches.

A batch is looked up as a whole, then its misses are inserted in order, as by GraphBolt's query and
replace.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from gnnbench.kernels.sieve import sieve_insert

NONE = -1


class Sieve:
    """The queue of a cache of ``capacity`` slots, on the host; empty at first.

    ``nodes``    int64 ``[capacity]``: node of each slot
    ``newer``    int32 ``[capacity]``: the slot filled next, -1 for the newest
    ``visited``  uint8 ``[capacity]``: hit since insertion, or since the hand passed
    ``state``    int64 ``[5]``: slots filled; the oldest, the newest, the slot at the hand, and the
                 one older than it (-1: none; a hand that is nowhere begins at the oldest)

    The caller looks ids up.
    """

    def __init__(self, capacity: int) -> None:
        self.nodes = torch.full((capacity,), NONE, dtype=torch.int64)
        self.newer = torch.full((capacity,), NONE, dtype=torch.int32)
        self.visited = torch.zeros(capacity, dtype=torch.uint8)
        self.state = torch.tensor([0, NONE, NONE, NONE, NONE])

    def mark(self, slots: Tensor) -> None:
        """Mark slots int32 ``[n]`` as visited."""
        self.visited.numpy()[slots.numpy()] = 1  # much faster than torch

    def insert(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Insert ``ids`` (int32 or int64 ``[n]``, distinct, none of them in the cache) one by one.

        Returns the slot of each id after all insertions, int32 ``[n]``, -1 if it was evicted again;
        and all evicted nodes, int64, new ones included.
        """
        return sieve_insert(self.nodes, self.newer, self.visited, self.state, ids.long())


def in_order(ids: Tensor) -> Tensor:
    """Sorted unique ``ids`` on the host; ``ids`` int32 or int64 ``[n]``, on any device.

    The order within a batch may depend on a sampler's threads, so insertions are sorted.
    """
    # np.sort of integers is much faster than torch.sort and np.unique.
    values = np.sort(ids.cpu().numpy())
    first = np.ones(values.size, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return torch.from_numpy(values[first])


def sieve_hits(batches: Iterable[Tensor], num_nodes: int, capacity: int) -> list[int]:
    """Hits of each batch in a SIEVE cache of ``capacity`` rows, empty at first.

    ``batches`` are ids in ``range(num_nodes)``, int64, distinct in each batch.
    """
    queue, where = Sieve(capacity), torch.full((num_nodes,), NONE, dtype=torch.int32)
    hits = []
    for ids in batches:
        slots = where[ids]
        hit = slots >= 0
        queue.mark(slots[hit])
        missed = ids[~hit]
        slots, evicted = queue.insert(missed)
        where[evicted] = NONE
        where[missed] = slots
        hits.append(int(hit.sum()))
    return hits
