"""DGL's ``NeighborSampler`` as a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.fault import Fault
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, Block, Hop, Sizes, host_ids
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.kernels.dgl_import import dgl_missing, import_dgl
from gnnbench.sampling.setting import TOPOLOGIES
from gnnbench.sampling.stage import DEFAULT, SamplerSpec, SamplerStage

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

ID_TYPES = {"int64": torch.int64, "int32": torch.int32}
FIT = "fit"
PIECE = 1 << 24  # ids sent to a device at a time


@dataclass(frozen=True)
class DglSampler(SamplerSpec):
    """DGL's own sampler, on the CPU and, where DGL is built with CUDA, on a GPU.

    On a GPU the graph is in its memory, or in locked host memory that it reads; DGL has no fused
    sampler there and passes over ``fused``. With ``topology=cpu`` the host draws for a GPU's cell,
    and the blocks are copied there, as DGL's ``DataLoader`` does of a graph on the CPU.

    DGL 1.1.3's fused sampler with int32 ids does not reset its map between calls and draws fewer
    edges from the second call on; with int64 ids it is right, and that is the host's default here.
    The broken setting can be asked for: the gate ends it as ``incorrect``. DGL's kernels of a GPU
    are right with either, and narrower ids are less to read: there ids are int32 where they fit.
    """

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "the real DGL: NeighborSampler"
    mini_batches: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    fused: bool = option(
        True, "the fused sampler; false: sample_neighbors and to_block by hop", (True, False)
    )
    id_type: str = option(
        DEFAULT,
        "id type of DGL's graph; fit: int32 below 2^31 edges, else int64 (default where a GPU"
        " draws); int64: the host's default",
        (DEFAULT, *ID_TYPES, FIT),
    )
    topology: str = option(
        DEFAULT,
        "gpu: the graph is copied there (default on a GPU); uva: read out of locked host memory;"
        " cpu: drawn by the host, the default there",
        (DEFAULT, *TOPOLOGIES),
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """DGL must be installed, for a GPU one with CUDA."""
        return dgl_missing(device)

    def resolved(self, device: str) -> Self:
        """The same with every default put in."""
        known = ("cpu",) if device == "cpu" else TOPOLOGIES
        topology = self._chosen("topology", known)
        ids = ("int64", "int32", FIT) if topology == "cpu" else (FIT, "int64", "int32")
        return replace(
            super().resolved(device), topology=topology, id_type=self._chosen("id_type", ids)
        )

    def ids_of(self, edges: int) -> torch.dtype:
        """Of a graph with so many edges; ``self`` is resolved. Raises ``UnsupportedError``."""
        fits = torch.int32 if edges < 2**31 else torch.int64
        found = fits if self.id_type == FIT else ID_TYPES[self.id_type]
        if found is torch.int32 is not fits:
            raise UnsupportedError("a graph of 2^31 edges or more needs sampler.id_type=int64")
        return found

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
        graph = job.graph
        id_type = spec.ids_of(graph.num_edges)
        own, no_ids = spec.topology == "uva", torch.empty(0, dtype=graph.indices.dtype)
        arrays = (graph.indptr, graph.indices, no_ids)
        if spec.topology == "gpu":
            csc = tuple(_on_device(t, id_type, job.device) for t in arrays)
        else:  # what is locked must be memory of its own, not a mapped file
            csc = tuple(t.to(id_type, copy=own) for t in arrays)
        self._graph = dgl.graph(("csc", csc), num_nodes=graph.num_nodes).formats(["csc"])
        if own:
            self._graph.create_formats_()
            self._graph.pin_memory_()
        self._id_type, self._topology = id_type, spec.topology
        # DGL's fanouts are given from the input layer to the seeds.
        self._sampler = dgl.dataloading.NeighborSampler(
            list(reversed(job.cell.fanouts)), fused=spec.fused
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> DglBatch:
        """Input nodes, seeds and blocks as DGL returns them."""
        on = self.job.device
        seeds = seeds.to("cpu" if self._topology == "cpu" else on, self._id_type)
        nodes, seeds, blocks = self._sampler.sample(self._graph, seeds)
        if self._topology == "cpu" and on.type != "cpu":
            nodes, seeds, blocks = nodes.to(on), seeds.to(on), [b.to(on) for b in blocks]
        return DglBatch(self._dgl, number, seeds, nodes, blocks)

    @property
    def sampled_on(self) -> torch.device:
        """The GPU, but the host where the topology is."""
        return torch.device("cpu") if self._topology == "cpu" else self.job.device

    def graph_bytes(self) -> int:
        """The topology, where it is in device memory."""
        if self._topology != "gpu":
            return 0
        graph = self.job.graph
        return (graph.indptr.numel() + graph.indices.numel()) * self._id_type.itemsize

    def close(self) -> None:
        """Unlock the topology."""
        if self._topology == "uva":
            self._graph.unpin_memory_()


def _on_device(ids: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """``ids`` on a device, sent as they are: of DGL's width they are twice the bytes."""
    found = torch.empty(ids.shape, dtype=dtype, device=device)
    for there, here in zip(found.split(PIECE), ids.split(PIECE), strict=True):
        there.copy_(here.to(device))
    return found


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
                    dst=host_ids(destinations),
                    edge_dst=host_ids(destinations[dst.long()]),
                    edge_src=host_ids(nodes[src.long()]),
                    positions=host_ids(block.edata[dgl.EID]),
                )
            )
        return found

    def tensors(self) -> list[Tensor]:
        """DGL does not tell which tensors it holds."""
        return []
