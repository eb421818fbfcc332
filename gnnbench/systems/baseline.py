"""``baseline``: DGL's method, native. Everything else is compared with it.

Per hop pick and three-pass id map; host gather with all cores; aggregation over compact blocks;
one batch after the other (DGL: Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).
On a GPU topology, sampling and training are there; features stay in host memory unless told else.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from gnnbench import rng
from gnnbench.cell import Cell
from gnnbench.check import gate
from gnnbench.check.hops import Hop, digest, hops_of
from gnnbench.data.graph import Graph
from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import MiniBatch
from gnnbench.stages.features import (
    DeviceGather,
    FeatureStore,
    HostGather,
    StagedGather,
    ZeroCopyGather,
)
from gnnbench.stages.sampler import HopByHop
from gnnbench.systems.base import Missing
from gnnbench.systems.native import native_missing
from gnnbench.systems.training import Counted, TrainingSystem

FEATURES = ("host", "gpu", "uva")
SAMPLED = ("src_nodes", "indptr", "indices")  # of a block, whatever else it carries


class Baseline(TrainingSystem):
    """DGL's method on our operators."""

    name = "baseline"
    summary = "DGL's method, native: per-hop pick, three-pass id map, host gather, serial"
    devices = ("cpu", "cuda")
    framework = "native"
    picks: ClassVar[tuple[str, ...]] = ("floyd", "reservoir")
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative", "new")
    options: ClassVar[dict[str, str]] = {
        "features": "on a GPU: host (default): gathered by the cores, then copied; gpu: the table"
        " in device memory; uva: read out of locked host memory by a kernel"
    }
    option_values: ClassVar[dict[str, tuple[Any, ...]]] = {"features": FEATURES}

    def __init__(self, cell: Cell, graph: Graph) -> None:
        super().__init__(cell, graph)
        self.where = str(cell.options.get("features", "host"))
        if self.where != "host" and self.device.type == "cpu":
            raise UnsupportedError(
                f"option features={self.where} of system 'baseline' needs --device cuda"
            )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def picks_on(self, device: str) -> tuple[str, ...]:
        """DGL draws by Floyd's method on the CPU and by reservoir on a GPU."""
        return self.picks if device == "cpu" else self.picks[::-1]

    def build_backend(self) -> None:
        """Native sampler and the feature store that the options ask for."""
        cell, device = self.cell, self.device
        self.sampler = HopByHop(
            self.graph, cell.fanouts, self.pick, self.frontier, cell.seed, device
        )
        if not self.trains:
            return
        table = self.graph.features
        self.features: FeatureStore
        if device.type == "cpu":
            self.features = HostGather(table)
        elif self.where == "gpu":
            self.features = DeviceGather(table, device)
        elif self.where == "uva":
            self.features = ZeroCopyGather(table, device)
        else:
            self.features = StagedGather(table, device)

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> MiniBatch:
        """One dispatch for all hops."""
        return self.sampler.sample(seeds, epoch, batch)

    def keep(self, drawn: MiniBatch) -> Any:
        """Nodes and numbers of edges by block; the counting waits until the clock has stopped."""
        sizes = [(b.src_nodes, b.num_dst, b.num_edges) for b in drawn.blocks]
        return drawn.seeds, sizes

    def counted(self, kept: Any) -> Counted:
        """Destinations and edges by hop; a hop of the ``new`` frontier is what its block adds."""
        seeds, sizes = kept
        hops: list[tuple[Tensor, int]] = []
        done_dst = done_edges = 0
        for nodes, num_dst, num_edges in reversed(sizes):
            hops.append((nodes[done_dst:num_dst], num_edges - done_edges))
            if self.frontier == "new":
                done_dst, done_edges = num_dst, num_edges
        return Counted(hops, sizes[0][0].numel(), seeds.numel())

    def gate_sample(self, seeds: Tensor, batch: int) -> MiniBatch:
        """The same draw, with the edges' positions."""
        self.sampler.with_positions = True
        try:
            return self.sampler.sample(seeds, 0, batch)
        finally:
            self.sampler.with_positions = False

    def gate_extra(self, seeds: Tensor) -> None:
        """Equality with the reference for the same key; the same draw as timed and as checked."""
        gate.check_against_reference(
            self.graph,
            self.cell.fanouts,
            seeds,
            lambda few: self.gate_sample(few, 0),
            pick=self.pick,
            frontier=self.frontier,
            key=rng.key(self.cell.seed, 0, "sample"),
        )
        timed, checked = self.sample(seeds, 0, 1), self.gate_sample(seeds, 1)
        for a, b in zip(timed.blocks, checked.blocks, strict=True):
            if not all(torch.equal(getattr(a, n), getattr(b, n)) for n in SAMPLED):
                raise gate.Fault("the sampler as timed draws other edges than as checked")

    def work_digest(self, drawn: list[list[Hop]]) -> str:
        """SHA-256 of the gate's edges."""
        return digest(drawn)

    def load(self, drawn: MiniBatch) -> Tensor:
        """Rows of the input nodes on the compute device."""
        return self.features.load(drawn.input_nodes)

    def feature_bytes(self, nodes: int) -> dict[str, int]:
        """All rows by the store's path."""
        return {self.features.path: nodes * self.row_bytes()}

    def h2d_bytes(self, nodes: int) -> int:
        """Feature rows; the training ids went over at the first epoch."""
        return nodes * self.row_bytes() if self.features.over_link else 0

    def close(self) -> None:
        """Give back the feature store's memory."""
        if hasattr(self, "features"):
            self.features.close()

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
        """Destinations and edges by hop."""
        return self.counted(self.keep(drawn)).hops

    def hops(self, drawn: MiniBatch) -> list[Hop]:
        """Edges in neutral form, on the host."""
        return hops_of(drawn.to("cpu"), self.frontier)
