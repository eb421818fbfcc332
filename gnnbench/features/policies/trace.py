"""A recorded trace of input nodes, and the hits of caches of every size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gnnbench.features.policies.policy import cached_rows, ranked, visits
from gnnbench.features.policies.sieve import sieve_hits

RATIOS = tuple(tenth / 10 for tenth in range(1, 11))  # of simulated dynamic policies


@dataclass(frozen=True)
class Trace:
    """Input nodes of every batch of some epochs: ids on the host, distinct and sorted in a batch.

    The order within a batch may depend on a sampler's threads; the order of batches is kept.
    """

    num_nodes: int
    batches: Sequence[Tensor]

    @classmethod
    def record(cls, num_nodes: int, batches: Iterable[Tensor]) -> Trace:
        """Record the ids of batches, int32 if they fit."""
        small = num_nodes <= torch.iinfo(torch.int32).max
        dtype = torch.int32 if small else torch.int64
        # np.sort of integers is much faster than torch.sort.
        arrays = (np.sort(ids.to("cpu", dtype).numpy()) for ids in batches)
        return cls(num_nodes, [torch.from_numpy(ids) for ids in arrays])

    @property
    def requests(self) -> int:
        """Number of requested rows."""
        return sum(ids.numel() for ids in self.batches)

    @cached_property
    def visits(self) -> Tensor:
        """Number of batches that contain each node, int64 ``[num_nodes]``."""
        return visits(self.num_nodes, self.batches)

    @cached_property
    def optimal(self) -> Tensor:
        """The optimal static ranking for every cache size, int64 ``[num_nodes]``."""
        return ranked(self.visits)

    def hits(self, ranking: Tensor) -> Tensor:
        """Hits of static caches of 0, 1 ... ``num_nodes`` rows, int64 ``[num_nodes + 1]``.

        ``ranking`` ``[num_nodes]`` has all nodes in caching order.
        """
        hits = torch.zeros(self.num_nodes + 1, dtype=torch.int64)
        torch.cumsum(self.visits[ranking], 0, out=hits[1:])
        return hits

    def hits_at(self, ranking: Tensor, ratios: Iterable[float]) -> list[int]:
        """Hits of static caches with ``ratios`` of all nodes."""
        hits = self.hits(ranking)
        return [int(hits[cached_rows(ratio, self.num_nodes)]) for ratio in ratios]

    def sieve_hits(
        self, ratios: Iterable[float] = RATIOS, before: Trace | None = None
    ) -> list[int]:
        """Hits of SIEVE caches with ``ratios`` of all nodes, simulated one by one.

        Each starts as the batches of ``before`` leave an empty cache; None: empty. Memory is
        proportional to the visited nodes.
        """
        earlier = [] if before is None else list(before.batches)
        met = self.visits > 0
        if before is not None:
            met |= before.visits > 0
        number = torch.cumsum(met, 0, dtype=torch.int64).sub_(1)
        few = int(met.sum())

        def hits(ratio: float) -> int:
            room = min(few, cached_rows(ratio, self.num_nodes))
            batches = (number[ids.long()] for ids in (*earlier, *self.batches))
            return sum(sieve_hits(batches, few, room)[len(earlier) :])

        return [hits(ratio) for ratio in ratios]
