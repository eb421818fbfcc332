"""A recorded trace of input nodes, and what caches of every size would have hit in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gnnbench.features.policies.policy import cached_rows, ranked, visits
from gnnbench.features.policies.sieve import sieve_hits

RATIOS = tuple(tenth / 10 for tenth in range(1, 11))  # at which a dynamic policy is simulated


@dataclass(frozen=True)
class Trace:
    """Input nodes of every batch of some epochs: ids on the host, distinct and sorted in a batch.

    A sampler's order within a batch may be that of its threads; batches keep theirs.
    """

    num_nodes: int
    batches: Sequence[Tensor]

    @classmethod
    def record(cls, num_nodes: int, batches: Iterable[Tensor]) -> Trace:
        """Keep the ids of batches as they are drawn, int32 where they fit."""
        small = num_nodes <= torch.iinfo(torch.int32).max
        dtype = torch.int32 if small else torch.int64
        # NumPy sorts integers many times as fast as torch.
        own = (np.sort(ids.to("cpu", dtype).numpy()) for ids in batches)
        return cls(num_nodes, [torch.from_numpy(ids) for ids in own])

    @property
    def requests(self) -> int:
        """Rows asked for in all."""
        return sum(ids.numel() for ids in self.batches)

    @cached_property
    def visits(self) -> Tensor:
        """In how many batches each node is, int64 ``[num_nodes]``."""
        return visits(self.num_nodes, self.batches)

    @cached_property
    def optimal(self) -> Tensor:
        """The ranking that no static cache beats at any size, int64 ``[num_nodes]``."""
        return ranked(self.visits)

    def hits(self, ranking: Tensor) -> Tensor:
        """Hits of static caches of 0, 1 ... ``num_nodes`` rows, int64 ``[num_nodes + 1]``.

        ``ranking`` ``[num_nodes]`` are all nodes, those cached first in front.
        """
        found = torch.zeros(self.num_nodes + 1, dtype=torch.int64)
        torch.cumsum(self.visits[ranking], 0, out=found[1:])
        return found

    def hits_at(self, ranking: Tensor, ratios: Iterable[float]) -> list[int]:
        """Hits of static caches of ``ratios`` of all nodes."""
        hits = self.hits(ranking)
        return [int(hits[cached_rows(ratio, self.num_nodes)]) for ratio in ratios]

    def sieve_hits(
        self, ratios: Iterable[float] = RATIOS, before: Trace | None = None
    ) -> list[int]:
        """Hits of SIEVE caches of ``ratios`` of all nodes, simulated one by one.

        Each is as the batches of ``before`` have left it, which was empty before those; without it
        empty. Memory goes with the nodes that are met.
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
