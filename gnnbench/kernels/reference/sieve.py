"""SIEVE as published (Zhang et al., NSDI 2024, Algorithm 1), over a Python list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Sieve:
    """A queue from tail (oldest) to head; a batch is looked up before it is inserted."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.queue: list[int] = []
        self._visited: dict[int, bool] = {}
        self._hand: int | None = None  # a node; None: at the tail

    def batch(self, ids: Sequence[int]) -> int:
        """Look up a batch and insert what it misses, in order; its hits."""
        missed = [node for node in ids if node not in self._visited]
        for node in ids:
            if node in self._visited:
                self._visited[node] = True
        for node in missed if self._capacity else ():
            if len(self.queue) == self._capacity:
                self._evict()
            self.queue.append(node)
            self._visited[node] = False
        return len(ids) - len(missed)

    def _evict(self) -> None:
        at = 0 if self._hand is None else self.queue.index(self._hand)
        while self._visited[self.queue[at]]:
            self._visited[self.queue[at]] = False
            at = (at + 1) % len(self.queue)
        self._hand = self.queue[at + 1] if at + 1 < len(self.queue) else None
        del self._visited[self.queue[at]]
        del self.queue[at]


def sieve_hits(batches: Iterable[Sequence[int]], capacity: int) -> list[int]:
    """As :func:`gnnbench.features.policies.sieve.sieve_hits`."""
    cache = Sieve(capacity)
    return [cache.batch(ids) for ids in batches]
