"""DGL's ``NeighborSampler`` as a stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from gnnbench.check.gate import Fault
from gnnbench.errors import UnsupportedError
from gnnbench.foreign.dgl_import import dgl_missing, import_dgl
from gnnbench.minibatch import Batch, Block, Hop, Sizes
from gnnbench.missing import Missing
from gnnbench.stages.job import Job
from gnnbench.stages.sampler.base import SamplerSpec, SamplerStage
from gnnbench.stages.spec import option

ID_TYPES = {"int64": torch.int64, "int32": torch.int32}


@dataclass(frozen=True)
class DglSampler(SamplerSpec):
    """DGL's own sampler on the CPU.

    DGL 1.1.3's fused sampler with int32 ids does not reset its map between calls and draws fewer
    edges from the second call on; with int64 ids it is right, and that is the default here. The
    broken setting can be asked for: the gate ends it as ``incorrect``.
    """

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "the real DGL: NeighborSampler"
    fused: bool = option(
        True, "the fused sampler; false: sample_neighbors and to_block by hop", (True, False)
    )
    id_type: str = option("int64", "id type of DGL's graph", tuple(ID_TYPES))

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """DGL must be installed."""
        return dgl_missing()

    def picks_on(self, device: str) -> tuple[str, ...]:
        """DGL does not let one choose."""
        return ("dgl",)

    def build(self, job: Job) -> DglStage:
        """One sampler object for the system's life."""
        return DglStage(self, job)


class DglStage(SamplerStage):
    """``NeighborSampler`` over the same CSC."""

    def __init__(self, spec: DglSampler, job: Job) -> None:
        super().__init__(spec, job)
        dgl = self._dgl = import_dgl()
        id_type, graph = ID_TYPES[spec.id_type], job.graph
        if id_type is torch.int32 and graph.num_edges >= 2**31:
            raise UnsupportedError("a graph of 2^31 edges or more needs sampler.id_type=int64")
        csc = (graph.indptr.to(id_type), graph.indices.to(id_type), torch.empty(0, dtype=id_type))
        self._graph = dgl.graph(("csc", csc), num_nodes=graph.num_nodes).formats(["csc"])
        self._id_type = id_type
        # DGL's fanouts are given from the input layer to the seeds.
        self._sampler = dgl.dataloading.NeighborSampler(
            list(reversed(job.cell.fanouts)), fused=spec.fused
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> DglBatch:
        """Input nodes, seeds and blocks as DGL returns them."""
        nodes, seeds, blocks = self._sampler.sample(self._graph, seeds.to(self._id_type))
        return DglBatch(self._dgl, number, seeds, nodes, blocks)


class DglBatch(Batch):
    """A batch of DGL's; ``dgl_blocks`` are what its layers take, the input layer first."""

    def __init__(
        self, dgl: Any, number: int, seeds: Tensor, nodes: Tensor, blocks: list[Any]
    ) -> None:
        self._dgl, self.number, self.seeds = dgl, number, seeds
        self._nodes, self.dgl_blocks = nodes, blocks

    @property
    def input_nodes(self) -> Tensor:
        """Global ids of the input block's sources."""
        return self._nodes

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """As blocks of ours; DGL's have the destinations first as well."""
        nid = self._dgl.NID
        found = []
        for block in self.dgl_blocks:
            offsets, sources, _ = block.adj_tensors("csc")
            nodes = block.srcdata[nid]
            found.append(Block(offsets.int(), sources.int(), nodes, block.num_dst_nodes()))
        return found

    def sizes(self) -> Sizes:
        """DGL's frontier is cumulative: a block's destinations are the hop's."""
        nid = self._dgl.NID
        layers = [
            (b.dstdata[nid], b.num_dst_nodes(), b.num_edges()) for b in reversed(self.dgl_blocks)
        ]
        return Sizes(self.seeds, layers, self._nodes.numel())

    def hops(self) -> list[Hop]:
        """Edges in neutral form; the edge ids of a graph built from CSC are its positions."""
        dgl = self._dgl
        found = []
        for block in reversed(self.dgl_blocks):
            src, dst = block.edges()
            nodes, destinations = block.srcdata[dgl.NID], block.dstdata[dgl.NID]
            if src.numel() and int(src.max()) >= nodes.numel():
                raise Fault(
                    f"an edge's source has local id {int(src.max())} in a block of"
                    f" {nodes.numel()} source nodes"
                )
            found.append(
                Hop(
                    dst=_ids(destinations),
                    edge_dst=_ids(destinations[dst.long()]),
                    edge_src=_ids(nodes[src.long()]),
                    positions=_ids(block.edata[dgl.EID]),
                )
            )
        return found

    def tensors(self) -> list[Tensor]:
        """DGL does not tell which tensors it holds."""
        return []


def _ids(t: Tensor) -> Any:
    return t.numpy().astype("int64")
