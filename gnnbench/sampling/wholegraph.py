"""NVIDIA's WholeGraph as a stage: its multi-layer sampler, from its PyPI wheels.

``GraphStructure`` over the topology in device memory, ``multilayer_sample_without_replacement``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block, Hop, Sizes
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.wholegraph_import import MEMORY, WholeMemory, wholegraph_missing
from gnnbench.sampling.stage import SamplerSpec, SamplerStage


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
        """The wheels must be installed, and a GPU be there."""
        return wholegraph_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """WholeGraph does not let one choose."""
        return ("wholegraph",)

    def build(self, job: Job) -> WholeGraphStage:
        """The topology into WholeMemory."""
        return WholeGraphStage(self, job)


class WholeGraphStage(SamplerStage):
    """The topology in WholeGraph's memory."""

    def __init__(self, spec: WholeGraphSampler, job: Job) -> None:
        super().__init__(spec, job)
        self._lookup: _EdgeLookup | None = None
        self._whole = WholeMemory.share()
        random.seed(job.cell.seed)  # its sampler draws its seeds here
        setting = f"{job.cell.system}.sampler.memory"
        self._tensors = [
            self._whole.store(values, spec.memory, "cuda", setting)
            for values in (job.graph.indptr, job.graph.indices)
        ]
        self._structure = self._whole.wgth.GraphStructure()
        self._structure.set_csr_graph(*self._tensors)

    def sample(self, seeds: Tensor, epoch: int, number: int) -> WholeGraphBatch:
        """Nodes by layer, edges by layer, row offsets, columns, the input layer first."""
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
        """What the look-up took of the GPU's memory is given back."""
        self._lookup = None
        torch.cuda.empty_cache()

    def close(self) -> None:
        """Destroy the topology, then, with the last stage, WholeGraph's state."""
        del self._structure
        for stored in self._tensors:
            self._whole.free(stored)
        self._whole.close()


class WholeGraphBatch(Batch):
    """What the multi-layer sampler returns, by layer from the input on."""

    def __init__(self, number: int, drawn: Any, positions: Any) -> None:
        self.number = number
        self._nodes, self._ends, self._offsets, self._columns = drawn
        self._positions = positions

    @property
    def seeds(self) -> Tensor:  # type: ignore[override]
        """The last layer's nodes."""
        nodes: Tensor = self._nodes[-1]
        return nodes

    @property
    def input_nodes(self) -> Tensor:
        """Global ids of the input layer."""
        nodes: Tensor = self._nodes[0]
        return nodes

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """As blocks of ours; a layer's nodes begin with the next one's."""
        return [
            Block(offsets.int(), columns.int(), nodes, dst.numel())
            for offsets, columns, nodes, dst in zip(
                self._offsets, self._columns, self._nodes, self._nodes[1:], strict=False
            )
        ]

    def sizes(self) -> Sizes:
        """Nodes by layer and numbers of edges; the input layer's nodes are no destinations."""
        layers = [
            (nodes, nodes.numel(), columns.numel())
            for nodes, columns in zip(
                reversed(self._nodes[1:]), reversed(self._columns), strict=True
            )
        ]
        return Sizes(self._nodes[-1], layers, self._nodes[0].numel())

    def hops(self) -> list[Hop]:
        """Edges in neutral form.

        The multi-layer sampler does not say which of parallel edges it drew: repeated ends get the
        positions of the row's parallel edges one by one.
        """
        found = []
        for layer in reversed(range(len(self._columns))):
            dst = self._nodes[layer + 1].long()
            rows = torch.repeat_interleave(
                torch.arange(dst.numel(), device=dst.device), self._offsets[layer].diff().long()
            )
            edge_dst = dst[rows]
            edge_src = self._nodes[layer].long()[self._columns[layer].long()]
            positions = self._positions(edge_dst, edge_src)
            found.append(Hop(*(t.cpu().numpy() for t in (dst, edge_dst, edge_src, positions))))
        return found

    def tensors(self) -> list[Tensor]:
        """Offsets, columns and nodes; it returns the edges by their ends as well."""
        return [*self._nodes[:-1], *self._offsets, *self._columns]


class _EdgeLookup:
    """Positions of edges by their ends, over the edges sorted by (destination, source)."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        indptr = graph.indptr.to(device)
        rows = torch.repeat_interleave(
            torch.arange(graph.num_nodes, device=device), indptr.diff(), output_size=graph.num_edges
        )
        self._nodes = graph.num_nodes
        ends = rows.mul_(self._nodes).add_(graph.indices.to(device))
        self._sorted, self._order = torch.sort(ends, stable=True)

    def positions(self, dst: Tensor, src: Tensor) -> Tensor:
        """Offsets in ``indices`` of drawn edges, int64.

        The n-th of equal edges gets the n-th of the graph's; one too many the position of another
        edge, where no such edge exists that of the nearest: the structural check finds both.
        """
        drawn, back = torch.sort(dst * self._nodes + src, stable=True)
        first = torch.searchsorted(drawn, drawn)
        nth = torch.arange(drawn.numel(), device=drawn.device) - first
        at = torch.searchsorted(self._sorted, drawn) + nth
        found = torch.empty_like(drawn)
        found[back] = self._order[at.clamp_(max=self._sorted.numel() - 1)]
        return found
