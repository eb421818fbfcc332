"""Sampler stage: seeds of a batch to a mini-batch of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
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

    ``fanouts`` from the seeds outwards. On a GPU the topology (``indptr`` and ``indices``) is
    copied there once and all hops are drawn there; seeds may come from anywhere. Raises
    ``torch.OutOfMemoryError`` where the topology does not fit.
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: Sequence[int],
        pick: str,
        frontier: str,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self._indptr = graph.indptr.to(device)
        self._indices = graph.indices.to(device)
        self._fanouts = list(fanouts)
        self.pick = pick
        self.frontier = frontier
        self._seed = seed
        self.with_positions = False

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> MiniBatch:
        """Blocks for ``seeds``; with ``with_positions`` set they carry the edges' positions."""
        return sample(
            self._indptr,
            self._indices,
            seeds.to(self._indices),  # its device and dtype
            self._fanouts,
            pick=self.pick,
            frontier=self.frontier,
            key=rng.key(self._seed, epoch, "sample"),
            batch=batch,
            with_positions=self.with_positions,
        )
