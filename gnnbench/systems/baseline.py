"""``baseline``: DGL's method, native. Everything else is compared with it.

Per hop pick and three-pass id map; host gather with all cores; aggregation over compact blocks;
one batch after the other (DGL: Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from gnnbench import rng
from gnnbench.check import gate
from gnnbench.check.hops import Hop, digest, hops_of
from gnnbench.minibatch import MiniBatch
from gnnbench.stages.features import HostGather
from gnnbench.stages.sampler import HopByHop
from gnnbench.systems.base import Missing
from gnnbench.systems.native import native_missing
from gnnbench.systems.training import TrainingSystem


class Baseline(TrainingSystem):
    """DGL's method on our operators."""

    name = "baseline"
    summary = "DGL's method, native: per-hop pick, three-pass id map, host gather, serial"
    devices = ("cpu",)
    framework = "native"
    picks: ClassVar[tuple[str, ...]] = ("floyd", "reservoir")
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative", "new")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built."""
        return native_missing()

    def build_backend(self) -> None:
        """Native sampler and host gather."""
        self.sampler = HopByHop(
            self.graph, self.cell.fanouts, self.pick, self.frontier, self.cell.seed
        )
        self.features = HostGather(self.graph.features)

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> MiniBatch:
        """One dispatch for all hops."""
        return self.sampler.sample(seeds, epoch, batch)

    def gate_sample(self, seeds: Tensor, batch: int) -> MiniBatch:
        """The same draw, with the edges' positions."""
        self.sampler.with_positions = True
        try:
            return self.sampler.sample(seeds, 0, batch)
        finally:
            self.sampler.with_positions = False

    def gate_extra(self, seeds: Tensor) -> None:
        """Equality with the reference sampler for the same key."""
        gate.check_against_reference(
            self.graph,
            self.cell.fanouts,
            seeds,
            lambda few: self.gate_sample(few, 0),
            pick=self.pick,
            frontier=self.frontier,
            key=rng.key(self.cell.seed, 0, "sample"),
        )

    def work_digest(self, drawn: list[list[Hop]]) -> str:
        """SHA-256 of the gate's edges."""
        return digest(drawn)

    def load(self, drawn: MiniBatch) -> Tensor:
        """Rows gathered into the staging buffer."""
        return self.features.load(drawn.input_nodes)

    def blocks(self, drawn: MiniBatch) -> list[Any]:
        """Our blocks are what our layers take."""
        return drawn.blocks

    def convert(self, batch: MiniBatch) -> list[Any]:
        """Nothing to convert."""
        return batch.blocks

    def input_nodes(self, drawn: MiniBatch) -> Tensor:
        """Source nodes of the input block."""
        return drawn.input_nodes

    def seeds(self, drawn: MiniBatch) -> Tensor:
        """Seeds of the batch."""
        return drawn.seeds

    def hop_sizes(self, drawn: MiniBatch) -> list[tuple[Tensor, int]]:
        """Destinations and edges by hop; a hop of the ``new`` frontier is what its block adds."""
        sizes: list[tuple[Tensor, int]] = []
        done_dst = done_edges = 0
        for block in reversed(drawn.blocks):
            sizes.append((block.src_nodes[done_dst : block.num_dst], block.num_edges - done_edges))
            if self.frontier == "new":
                done_dst, done_edges = block.num_dst, block.num_edges
        return sizes

    def hops(self, drawn: MiniBatch) -> list[Hop]:
        """Edges in neutral form."""
        return hops_of(drawn, self.frontier)
