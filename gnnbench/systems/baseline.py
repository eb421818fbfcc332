"""``baseline``: DGL's method, native. Everything else is compared with it.

Per hop pick and three-pass id map; host gather with all cores; aggregation over compact blocks;
one batch after the other (DGL: Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).
On a GPU topology, sampling and training are there; features stay in host memory unless told else.
``sampler`` puts any other sampler in the place of DGL's and leaves the rest as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from gnnbench import rng
from gnnbench.cell import Cell
from gnnbench.check import gate
from gnnbench.check.hops import Hop, digest, hops_of
from gnnbench.check.law import Law
from gnnbench.check.same import same_work
from gnnbench.data.graph import Graph
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.minibatch import MiniBatch
from gnnbench.ops.picks import PICKS, WEIGHTED
from gnnbench.sampling.base import TOPOLOGIES, Sampler
from gnnbench.sampling.build import build_sampler
from gnnbench.sampling.registry import sampler_class, sampler_names
from gnnbench.stages.features import (
    DeviceGather,
    FeatureStore,
    HostGather,
    StagedGather,
    ZeroCopyGather,
)
from gnnbench.systems.base import Missing
from gnnbench.systems.native import native_missing
from gnnbench.systems.training import Counted, TrainingSystem

FEATURES = ("host", "gpu", "uva")
PASSED_ON = ("fetch_size", "unsafe")  # options of some samplers


class Baseline(TrainingSystem):
    """DGL's method on our operators, or another sampler in its place."""

    name = "baseline"
    summary = "DGL's method, native: per-hop pick, three-pass id map, host gather, serial"
    devices = ("cpu", "cuda")
    framework = "native"
    picks: ClassVar[tuple[str, ...]] = PICKS
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative", "new")
    options: ClassVar[dict[str, str]] = {
        "features": "on a GPU: host (default): gathered by the cores, then copied; gpu: the table"
        " in device memory; uva: read out of locked host memory by a kernel",
        "sampler": "hop-by-hop (default) or any other of gnnbench.samplers()",
        "topology": "on a GPU: gpu (default): the graph is copied there; uva: read out of locked"
        " host memory; cpu: sampled on the CPU",
        "fetch_size": "of the sampler pgsampler: tasks taken at once, 1 to 32 (default 5)",
        "unsafe": "of the sampler pgsampler-as-printed: true, for it loses edges",
    }
    option_values: ClassVar[dict[str, tuple[Any, ...]]] = {
        "features": FEATURES,
        "topology": TOPOLOGIES,
        "fetch_size": tuple(range(1, 33)),
        "unsafe": (True, False),
    }

    def __init__(self, cell: Cell, graph: Graph) -> None:
        self.check_options(cell.options)
        super().__init__(cell, graph)
        self.where = str(cell.options.get("features", "host"))
        for option, value, plain in (
            ("features", self.where, "host"),
            ("topology", cell.options.get("topology", "cpu"), "cpu"),
        ):
            if value != plain and self.device.type == "cpu":
                raise UnsupportedError(
                    f"option {option}={value} of system '{self.name}' needs --device cuda"
                )
        if self.pick in WEIGHTED and graph.weights is None:
            raise UnsupportedError(
                f"pick '{self.pick}' needs edge weights, and '{graph.name}' stores none"
            )

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Options of the system, and those that its sampler takes."""
        given = {**options}
        sampler = given.pop("sampler", "hop-by-hop")
        super().check_options(given)
        if sampler not in sampler_names():
            raise UsageError(
                f"option 'sampler' of system '{cls.name}' cannot be '{sampler}'; it is one of:"
                f" {', '.join(sampler_names())}"
            )
        sampler_class(sampler).check_options({k: v for k, v in given.items() if k in PASSED_ON})

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    @property
    def _sampler_class(self) -> type[Sampler]:
        return sampler_class(self.cell.options.get("sampler", "hop-by-hop"))

    def picks_on(self, device: str) -> tuple[str, ...]:
        """The sampler's, where it draws."""
        cls = self._sampler_class
        sampled_on = "cpu" if self.cell.options.get("topology") == "cpu" else device
        if sampled_on not in cls.devices:
            raise UnsupportedError(
                f"sampler '{cls.name}' does not sample on {sampled_on}; it does on:"
                f" {', '.join(cls.devices)}"
            )
        return cls.picks_on(sampled_on)

    def frontiers_known(self) -> tuple[str, ...]:
        """The sampler's."""
        return self._sampler_class.frontiers

    @cached_property
    def law(self) -> Law:
        """Inclusion law of the sampler's pick."""
        walks, length = self._built.setting.pick.walk[:2] or (0, 0)
        return Law.of(self.pick, self.graph.indptr, self.graph.weights, walks * length)

    @cached_property
    def _built(self) -> Sampler:
        options = self.cell.options
        return build_sampler(
            self._sampler_class.name,
            self.graph,
            self.cell.fanouts,
            self.device,
            self.cell.seed,
            pick=self.pick,
            frontier=self.frontier,
            topology=options.get("topology"),
            weights="graph" if self.pick in WEIGHTED else None,
            **{option: options[option] for option in PASSED_ON if option in options},
        )

    def build_backend(self) -> None:
        """The sampler and the feature store that the options ask for."""
        self.sampler = self._built
        device = self.device
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
        """The same draw, with the edges' positions; random walks have visits instead."""
        walks = self.pick == "random_walk"
        return self.sampler.sample(seeds, 0, batch, with_positions=not walks)

    def gate_extra(self, seeds: Tensor) -> None:
        """The reference's work for the same key; the same draw as timed and as checked."""
        gate.check_against_reference(
            self.graph,
            self.cell.fanouts,
            seeds,
            lambda few: self.gate_sample(few, 0),
            pick=self.sampler.setting.pick,
            frontier=self.frontier,
            key=rng.key(self.cell.seed, 0, "sample"),
        )
        timed, checked = self.sample(seeds, 0, 1), self.gate_sample(seeds, 1)
        fault = same_work(_bare(checked), timed, self.frontier)
        if fault is not None:
            raise gate.Fault(f"the sampler as timed draws other edges than as checked: {fault}")

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
        """Give back the memory of the sampler and of the feature store."""
        for stage in ("sampler", "features"):
            if hasattr(self, stage):
                getattr(self, stage).close()

    def blocks(self, drawn: MiniBatch) -> list[Any]:
        """Our blocks are what our layers take."""
        return drawn.blocks

    def block_tensors(self, drawn: MiniBatch) -> list[Tensor]:
        """Offsets, columns and nodes."""
        return [t for b in drawn.blocks for t in (b.indptr, b.indices, b.src_nodes)]

    def sampled_on(self) -> torch.device:
        """The CPU where the topology stays there."""
        return self.sampler.setting.sampled_on

    def graph_bytes(self) -> int:
        """The topology, where it is in device memory."""
        return super().graph_bytes() if self.sampler.setting.topology == "gpu" else 0

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


def _bare(batch: MiniBatch) -> MiniBatch:
    """The batch without positions, as it is timed."""
    return replace(batch, blocks=[replace(block, positions=None) for block in batch.blocks])
