"""Sampler stage: seeds of a batch to a mini-batch of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from gnnbench import rng
from gnnbench.data.graph import Graph
from gnnbench.minibatch import MiniBatch
from gnnbench.ops.sampler import sample


class Sampler(Protocol):
    """Draws the blocks of one batch; the same (epoch, batch) always draws the same edges."""

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> MiniBatch:
        """Blocks for ``seeds`` (int64 global ids), input layer first."""
        ...


class HopByHop:
    """Per hop: pick, then the three-pass id map (DGL's method), native.

    ``fanouts`` from the seeds outwards.
    """

    def __init__(
        self, graph: Graph, fanouts: Sequence[int], pick: str, frontier: str, seed: int
    ) -> None:
        self._graph = graph
        self._fanouts = list(fanouts)
        self.pick = pick
        self.frontier = frontier
        self._seed = seed
        self.with_positions = False

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> MiniBatch:
        """Blocks for ``seeds``; with ``with_positions`` set they carry the edges' positions."""
        return sample(
            self._graph.indptr,
            self._graph.indices,
            seeds.to(self._graph.indices.dtype),
            self._fanouts,
            pick=self.pick,
            frontier=self.frontier,
            key=rng.key(self._seed, epoch, "sample"),
            batch=batch,
            with_positions=self.with_positions,
        )
