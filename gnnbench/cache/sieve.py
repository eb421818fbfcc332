"""SIEVE (Zhang et al., NSDI 2024), the eviction that GraphBolt's feature caches offer, simulated.

A batch is looked up whole, then its misses are inserted in order, as GraphBolt's query and replace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gnnbench.errors import UsageError

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
LOOK = 4096  # places that the hand looks at first; twice as many each time it finds too few
AT_TAIL = -1  # where the hand begins


def sieve_hits(batches: Sequence[Ids], num_nodes: int, capacity: int) -> int:
    """Hits in all of a cache of ``capacity`` rows that is empty at first.

    ``batches`` are ids in ``range(num_nodes)``, distinct in each. Raises ``UsageError`` where one
    is missed twice in a batch.
    """
    if capacity == 0:
        return 0
    queue = _Queue(num_nodes, sum(ids.size for ids in batches), capacity)
    return sum(queue.batch(ids) for ids in batches)


class _Queue:
    """The queue as a log of all insertions, the oldest first, with holes where one was evicted.

    Nothing ever moves in SIEVE's queue, so that a place in the log is a place in the queue.
    """

    def __init__(self, num_nodes: int, requests: int, capacity: int) -> None:
        self._where = np.full(num_nodes, -1, dtype=np.int64)  # place of a cached node, or < 0
        self._node = np.empty(requests, dtype=np.int64)
        self._alive = np.zeros(requests, dtype=np.bool_)
        self._visited = np.zeros(requests, dtype=np.bool_)
        self._end = self._size = 0
        self._hand = AT_TAIL
        self._oldest = 0  # no place before it is alive
        self._capacity = capacity

    def batch(self, ids: Ids) -> int:
        """Look up a batch and insert what it misses; its hits."""
        places = self._where[ids]
        hit = places >= 0
        self._visited[places[hit]] = True
        missed = ids[~hit]
        marks = -2 - np.arange(missed.size)  # a node that is not cached may have any below 0
        self._where[missed] = marks
        if not np.array_equal(self._where[missed], marks):
            raise UsageError("a batch of the trace holds a node twice; record distinct input nodes")
        free = min(self._capacity - self._size, missed.size)
        self._insert(missed[:free])
        if free < missed.size:
            self._replace(missed[free:])
        return int(np.count_nonzero(hit))

    def _insert(self, ids: Ids) -> None:
        places = np.arange(self._end, self._end + ids.size)
        self._where[ids] = places
        self._node[places] = ids
        self._alive[places] = True
        self._end += ids.size
        self._size += ids.size

    def _evict(self, places: Ids) -> None:
        self._alive[places] = False
        self._where[self._node[places]] = -1
        self._size -= places.size

    def _replace(self, ids: Ids) -> None:
        """Evict one, insert one, for each of ``ids``: the queue is full."""
        while ids.size:
            if self._hand == AT_TAIL:
                self._oldest += int(self._alive[self._oldest : self._end].argmax())
                self._hand = self._oldest
            victims = self._sweep(ids.size)
            if not victims.size:
                self._hand = AT_TAIL
                continue
            # A hand that evicts the head begins at the tail again, and not at what comes after.
            alone = victims.size == 1
            if alone and not self._alive[int(victims[0]) + 1 : self._end].any():
                self._hand = AT_TAIL
            self._evict(victims)
            first = self._end
            self._insert(ids[: victims.size])
            ids = ids[victims.size :]
            if not ids.size or self._hand == AT_TAIL:
                continue
            # It goes on to what was just inserted and which none has visited: a single one is the
            # head, behind several each eviction is followed by one more insertion.
            chased = 1 if alone else ids.size
            self._insert(ids[:chased])
            self._evict(np.arange(first, first + chased))
            ids = ids[chased:]
            self._hand = AT_TAIL if alone else first + chased

    def _sweep(self, most: int) -> Ids:
        """The first ``most`` unvisited places from the hand on; the hand passes the last of them,
        all others that it passed are unvisited from now on."""
        found: list[Ids] = []
        look = LOOK
        while most and self._hand < self._end:
            stop = min(self._hand + look, self._end)
            seen = slice(self._hand, stop)
            new = np.flatnonzero(self._alive[seen] & ~self._visited[seen])[:most] + self._hand
            if new.size == most:
                stop = int(new[-1]) + 1
            self._visited[self._hand : stop] = False
            self._hand = stop
            most -= new.size
            found.append(new)
            look *= 2
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
