"""NVIDIA's WholeGraph as a stage: its multi-layer sampler, from its PyPI wheels.

``GraphStructure`` over the topology in device memory, ``multilayer_sample_without_replacement``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block, Hop, Sizes
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.wholegraph_import import MEMORY, WholeMemory, wholegraph_missing
from gnnbench.sampling.stage import SamplerSpec, SamplerStage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Layers = tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]


@dataclass(frozen=True)
class WholeGraphSampler(SamplerSpec):
    """WholeGraph's sampler on one GPU; in-neighbours are its CSR's rows."""

    name: ClassVar[str] = "wholegraph"
    summary: ClassVar[str] = "NVIDIA's WholeGraph: its multi-layer sampler on one GPU"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    memory: str = option(MEMORY[0], "WholeMemory of the topology", MEMORY)

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """WholeGraph's wheels and a GPU are required."""
        return wholegraph_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """WholeGraph has one pick function."""
        return ("wholegraph",)

    def build(self, job: Job) -> WholeGraphStage:
        """Build the stage, with the topology in WholeMemory."""
        return WholeGraphStage(self, job)


class WholeGraphStage(SamplerStage):
    """The topology in WholeGraph's memory."""

    def __init__(self, spec: WholeGraphSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._lookup: _EdgeLookup | None = None
        self._whole = WholeMemory.share()
        random.seed(job.cell.seed)  # WholeGraph takes its seeds from this generator
        setting = f"{job.cell.system}.sampler.memory"
        self._tensors = [
            self._whole.store(values, spec.memory, "cuda", setting)
            for values in (job.graph.indptr, job.graph.indices)
        ]
        self._structure = self._whole.wgth.GraphStructure()
        self._structure.set_csr_graph(*self._tensors)

    def sample(self, seeds: Tensor, epoch: int, number: int) -> WholeGraphBatch:
        """Draw a batch: nodes, edges, row offsets and columns by layer, input layer first."""
        nodes = seeds.to(self.job.device, self.job.graph.indices.dtype)
        drawn = self._structure.multilayer_sample_without_replacement(
            nodes, list(self.job.cell.fanouts)
        )
        return WholeGraphBatch(number, drawn, self._positions)

    def _positions(self, dst: Tensor, src: Tensor) -> Tensor:
        if self._lookup is None:
            self._lookup = _EdgeLookup(self.job.graph, self.job.device)
        return self._lookup.positions(dst, src)

    def gate_is_over(self) -> None:
        """Free the edge look-up's GPU memory."""
        self._lookup = None
        torch.cuda.empty_cache()

    def close(self) -> None:
        """Destroy the topology; the last stage destroys WholeGraph's state."""
        del self._structure
        for stored in self._tensors:
            self._whole.free(stored)
        self._whole.close()


class WholeGraphBatch(Batch):
    """A batch of the multi-layer sampler.

    ``layers``: nodes, edges by their ends, row offsets and columns, each by layer, input layer
    first. ``positions`` maps destinations and sources ``[e]`` to positions ``[e]``.
    """

    def __init__(
        self, number: int, layers: Layers, positions: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        self.number = number
        self._nodes, _, self._offsets, self._columns = layers
        self._positions = positions

    @property
    def seeds(self) -> Tensor:  # type: ignore[override]
        """The last layer's nodes."""
        return self._nodes[-1]

    @property
    def input_nodes(self) -> Tensor:
        """Global ids of the input layer."""
        return self._nodes[0]

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The layers as ``Block``; a layer's nodes begin with the next layer's nodes."""
        return [
            Block(offsets.int(), columns.int(), nodes, dst.numel())
            for offsets, columns, nodes, dst in zip(
                self._offsets, self._columns, self._nodes, self._nodes[1:], strict=False
            )
        ]

    def sizes(self) -> Sizes:
        """Sizes by hop; the input layer's nodes are no destinations."""
        layers = [
            (nodes, nodes.numel(), columns.numel())
            for nodes, columns in zip(
                reversed(self._nodes[1:]), reversed(self._columns), strict=True
            )
        ]
        return Sizes(self._nodes[-1], layers, self._nodes[0].numel())

    def hops(self) -> list[Hop]:
        """Edges of every hop.

        The multi-layer sampler does not report which of several parallel edges it drew: equal edges
        get the positions of the row's parallel edges in turn.
        """
        hops = []
        for layer in reversed(range(len(self._columns))):
            dst = self._nodes[layer + 1].long()
            rows = torch.repeat_interleave(
                torch.arange(dst.numel(), device=dst.device), self._offsets[layer].diff().long()
            )
            edge_dst = dst[rows]
            edge_src = self._nodes[layer].long()[self._columns[layer].long()]
            positions = self._positions(edge_dst, edge_src)
            hops.append(Hop(*(t.cpu().numpy() for t in (dst, edge_dst, edge_src, positions))))
        return hops

    def tensors(self) -> list[Tensor]:
        """Offsets, columns and nodes of every layer."""
        return [*self._nodes[:-1], *self._offsets, *self._columns]


class _EdgeLookup:
    """Positions of edges by destination and source, from the sorted edges of the graph."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        indptr = graph.indptr.to(device)
        rows = torch.repeat_interleave(
            torch.arange(graph.num_nodes, device=device), indptr.diff(), output_size=graph.num_edges
        )
        self._nodes = graph.num_nodes
        ends = rows.mul_(self._nodes).add_(graph.indices.to(device))
        self._sorted, self._order = torch.sort(ends, stable=True)

    def positions(self, dst: Tensor, src: Tensor) -> Tensor:
        """Offsets of drawn edges in ``indices``, int64 ``[e]``.

        The n-th of equal edges gets the n-th parallel edge. A surplus or nonexistent edge gets the
        position of another edge; the structural check detects both.
        """
        drawn, order = torch.sort(dst * self._nodes + src, stable=True)
        first = torch.searchsorted(drawn, drawn)
        nth = torch.arange(drawn.numel(), device=drawn.device) - first
        at = torch.searchsorted(self._sorted, drawn) + nth
        positions = torch.empty_like(drawn)
        positions[order] = self._order[at.clamp_(max=self._sorted.numel() - 1)]
        return positions
