"""SIEVE (Zhang et al., NSDI 2024), the eviction that GraphBolt's feature caches offer.

A batch is looked up whole, then its misses are inserted in order, as GraphBolt's query and replace.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from gnnbench.kernels.sieve import sieve_insert

NONE = -1


class Sieve:
    """The queue of a cache of ``capacity`` slots, empty at first; on the host.

    ``nodes``    int64 ``[capacity]``: whose row a slot has
    ``newer``    int32 ``[capacity]``: the slot that was filled next, -1 of the newest
    ``visited``  uint8 ``[capacity]``: found since it was inserted or since the hand passed
    ``state``    int64 ``[5]``: slots filled; the oldest, the newest, the slot at the hand, and the
                 one older than it (-1: none; a hand that is nowhere begins at the oldest)

    Who looks ids up, and where, is the caller's.
    """

    def __init__(self, capacity: int) -> None:
        self.nodes = torch.full((capacity,), NONE, dtype=torch.int64)
        self.newer = torch.full((capacity,), NONE, dtype=torch.int32)
        self.visited = torch.zeros(capacity, dtype=torch.uint8)
        self.state = torch.tensor([0, NONE, NONE, NONE, NONE])

    def mark(self, slots: Tensor) -> None:
        """Slots int32 ``[n]`` were found."""
        self.visited.numpy()[slots.numpy()] = 1  # many times as fast as torch's

    def insert(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Insert ``ids`` (int32 or int64 ``[n]``, distinct, none of them in the cache) one by one.

        Returns the slot of each once all are inserted, int32 ``[n]``, -1 of one that was evicted
        again; and all nodes that were evicted, int64, the new ones among them.
        """
        return sieve_insert(self.nodes, self.newer, self.visited, self.state, ids.long())


def in_order(ids: Tensor) -> Tensor:
    """``ids`` int32 or int64 ``[n]``, on any device, as they are inserted: ascending, each once.

    On the host. The order within a batch may be that of a sampler's threads.
    """
    # NumPy sorts integers many times as fast as torch, and as its own unique.
    there = np.sort(ids.cpu().numpy())
    first = np.ones(there.size, dtype=np.bool_)
    np.not_equal(there[1:], there[:-1], out=first[1:])
    return torch.from_numpy(there[first])


def sieve_hits(batches: Iterable[Tensor], num_nodes: int, capacity: int) -> list[int]:
    """Hits of each batch in a cache of ``capacity`` rows that is empty at first.

    ``batches`` are ids in ``range(num_nodes)``, int64, distinct in each.
    """
    queue, where = Sieve(capacity), torch.full((num_nodes,), NONE, dtype=torch.int32)
    hits = []
    for ids in batches:
        slots = where[ids]
        there = slots >= 0
        queue.mark(slots[there])
        missed = ids[~there]
        slots, evicted = queue.insert(missed)
        where[evicted] = NONE
        where[missed] = slots
        hits.append(int(there.sum()))
    return hits
