"""DGL's GraphBolt as a stage: its graph, its neighbour sampler, its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block, Hop, Sizes, host_ids
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.kernels.dgl_import import graphbolt_missing, require_graphbolt
from gnnbench.sampling.setting import TOPOLOGIES
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from gnnbench.kernels.dgl_types import DglBlock


@dataclass(frozen=True)
class BoltSampler(SamplerSpec):
    """GraphBolt's uniform neighbour sampling, hop by hop, and its compaction of ids.

    Its ``NeighborSampler`` does the same in a chain of data pipes, and GraphBolt's loader overlaps
    them with other work. Here the recipe's schedule decides which phases overlap.
    """

    name: ClassVar[str] = "graphbolt"
    summary: ClassVar[str] = "DGL's GraphBolt: its neighbour sampling, hop by hop"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    topology: str = option(
        DEFAULT,
        "gpu: the graph is copied there (default on a GPU); uva: read out of locked host memory;"
        " cpu: the default there",
        (DEFAULT, *TOPOLOGIES),
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """GraphBolt must be installed, with CUDA for a GPU."""
        return graphbolt_missing(device)

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        known = ("cpu",) if device == "cpu" else ("gpu", "uva")
        return replace(super().resolved(device), topology=self._chosen("topology", known))

    def picks_on(self, device: str) -> tuple[str, ...]:
        """GraphBolt has one pick function."""
        return ("graphbolt",)

    def build(self, job: Job) -> BoltStage:
        """Build the stage, with the graph in its place."""
        return BoltStage(self, job)


class BoltStage(SamplerStage):
    """A ``FusedCSCSamplingGraph`` over the same CSC."""

    def __init__(self, spec: BoltSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._bolt = require_graphbolt(job.device.type)
        self._topology = spec.topology
        graph = job.graph
        # A mapped file cannot be locked, so UVA needs a copy.
        is_uva = spec.topology == "uva"
        csc = [t.clone() if is_uva else t for t in (graph.indptr, graph.indices)]
        sampling_graph = self._bolt.fused_csc_sampling_graph(*csc)
        if spec.topology == "gpu":
            sampling_graph = sampling_graph.to(job.device)
        elif is_uva:
            sampling_graph.pin_memory_()
        self._graph = sampling_graph
        self._fanouts = [torch.tensor([fanout]) for fanout in job.cell.fanouts]

    def sample(self, seeds: Tensor, epoch: int, number: int) -> BoltBatch:
        """Draw a batch as ``NeighborSampler``: a hop's edges, then their local ids, seeds first."""
        seeds = nodes = seeds.to(self.job.device, self.job.graph.indices.dtype)
        layers: list[SampledLayer] = []
        for fanout in self._fanouts:
            drawn = self._graph.sample_neighbors(nodes, fanout)
            unique, csc, _ = self._bolt.unique_and_compact_csc_formats(drawn.sampled_csc, nodes)
            layers.insert(
                0,
                self._bolt.SampledSubgraphImpl(
                    sampled_csc=csc,
                    original_column_node_ids=nodes,
                    original_row_node_ids=unique,
                    original_edge_ids=drawn.original_edge_ids,
                ),
            )
            nodes = unique
        batch = self._bolt.MiniBatch(seeds=seeds, sampled_subgraphs=layers, input_nodes=nodes)
        return BoltBatch(number, batch)

    def graph_bytes(self) -> int:
        """Bytes of the topology, 0 unless it is in device memory."""
        if self._topology != "gpu":
            return 0
        graph = self.job.graph
        return sum(t.numel() * t.element_size() for t in (graph.indptr, graph.indices))

    def close(self) -> None:
        """Free the graph, which unlocks its memory."""
        del self._graph


class CscFormat(Protocol):
    """``CSCFormatBase`` of GraphBolt: a layer's edges with local ids."""

    indptr: Tensor
    indices: Tensor


class SampledLayer(Protocol):
    """``SampledSubgraph`` of GraphBolt: the edges of one hop."""

    sampled_csc: CscFormat
    original_column_node_ids: Tensor
    original_row_node_ids: Tensor
    original_edge_ids: Tensor


class GraphBoltMiniBatch(Protocol):
    """``MiniBatch`` of GraphBolt, input layer first."""

    seeds: Tensor
    input_nodes: Tensor
    sampled_subgraphs: Sequence[SampledLayer]
    blocks: list[DglBlock]


class BoltBatch(Batch):
    """A ``MiniBatch`` of GraphBolt; ``dgl_blocks`` are the inputs of DGL's layers."""

    def __init__(self, number: int, batch: GraphBoltMiniBatch) -> None:
        self.number, self.seeds = number, batch.seeds
        self._nodes, self._layers = batch.input_nodes, batch.sampled_subgraphs
        self.dgl_blocks = batch.blocks

    @property
    def input_nodes(self) -> Tensor:
        """Global ids of the input layer's sources."""
        return self._nodes

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The layers as ``Block``; GraphBolt also numbers destinations first."""
        return [
            Block(
                layer.sampled_csc.indptr.int(),
                layer.sampled_csc.indices.int(),
                layer.original_row_node_ids,
                layer.original_column_node_ids.numel(),
            )
            for layer in self._layers
        ]

    def sizes(self) -> Sizes:
        """Sizes by hop; the frontier is cumulative, so a layer is a hop."""
        layers = [
            (nodes, nodes.numel(), layer.sampled_csc.indices.numel())
            for layer in reversed(self._layers)
            for nodes in (layer.original_column_node_ids,)
        ]
        return Sizes(self.seeds, layers, self._nodes.numel())

    def hops(self) -> list[Hop]:
        """Edges of every hop; edge ids of a graph without stored ids are positions."""
        hops = []
        for layer in reversed(self._layers):
            csc, dst = layer.sampled_csc, layer.original_column_node_ids
            edges = torch.repeat_interleave(dst, csc.indptr.diff().long())
            hops.append(
                Hop(
                    dst=host_ids(dst),
                    edge_dst=host_ids(edges),
                    edge_src=host_ids(layer.original_row_node_ids[csc.indices.long()]),
                    positions=host_ids(layer.original_edge_ids),
                )
            )
        return hops

    def tensors(self) -> list[Tensor]:
        """Empty: DGL does not expose the tensors of a block."""
        return []
