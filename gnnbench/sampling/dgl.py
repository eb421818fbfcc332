"""DGL's ``NeighborSampler`` as a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

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
    from types import ModuleType
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from gnnbench.kernels.dgl_types import DglBlock

ID_TYPES = {"int64": torch.int64, "int32": torch.int32}
FIT = "fit"
CHUNK = 1 << 24  # ids copied to a device at a time


@dataclass(frozen=True)
class DglSampler(SamplerSpec):
    """DGL's own sampler, on the CPU and, where DGL is built with CUDA, on a GPU.

    On a GPU the graph is in device memory, or in locked host memory that the GPU reads. DGL has no
    fused sampler for GPUs and ignores ``fused`` there. With ``topology=cpu`` the host samples for a
    GPU cell and the blocks are copied, as by DGL's ``DataLoader`` for a graph on the CPU.

    DGL 1.1.3's fused sampler with int32 ids does not reset its map between calls and draws fewer
    edges from the second call on. It is correct with int64 ids, the default on the host. The broken
    setting can be chosen; the gate reports it as ``incorrect``. DGL's GPU kernels are correct with
    both, and int32 ids take less bandwidth, so a GPU uses int32 if they fit.
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
        """DGL must be installed, with CUDA for a GPU."""
        return dgl_missing(device)

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved. Raises ``UnsupportedError``."""
        known = ("cpu",) if device == "cpu" else TOPOLOGIES
        topology = self._chosen("topology", known)
        ids = ("int64", "int32", FIT) if topology == "cpu" else (FIT, "int64", "int32")
        return replace(
            super().resolved(device), topology=topology, id_type=self._chosen("id_type", ids)
        )

    def ids_of(self, edges: int) -> torch.dtype:
        """Id type of a graph with ``edges`` edges; ``self`` is resolved.

        Raises ``UnsupportedError`` for int32 with 2^31 edges or more.
        """
        fits = torch.int32 if edges < 2**31 else torch.int64
        id_type = fits if self.id_type == FIT else ID_TYPES[self.id_type]
        if id_type is torch.int32 is not fits:
            raise UnsupportedError("a graph of 2^31 edges or more needs sampler.id_type=int64")
        return id_type

    def picks_on(self, device: str) -> tuple[str, ...]:
        """DGL has one pick function."""
        return ("dgl",)

    def build(self, job: Job) -> DglStage:
        """Build one sampler object, used until the system ends."""
        return DglStage(self, job)


class DglStage(SamplerStage):
    """``NeighborSampler`` over the same CSC."""

    def __init__(self, spec: DglSampler, job: Job) -> None:
        super().__init__(spec, job)
        dgl = self._dgl = import_dgl()
        graph = job.graph
        id_type = spec.ids_of(graph.num_edges)
        is_uva, no_ids = spec.topology == "uva", torch.empty(0, dtype=graph.indices.dtype)
        arrays = (graph.indptr, graph.indices, no_ids)
        if spec.topology == "gpu":
            csc = tuple(_on_device(t, id_type, job.device) for t in arrays)
        else:  # a mapped file cannot be locked, so UVA needs a copy
            csc = tuple(t.to(id_type, copy=is_uva) for t in arrays)
        self._graph = dgl.graph(("csc", csc), num_nodes=graph.num_nodes).formats(["csc"])
        if is_uva:
            self._graph.create_formats_()
            self._graph.pin_memory_()
        self._id_type, self._topology = id_type, spec.topology
        # DGL orders fanouts from the input layer to the seeds.
        self._sampler = dgl.dataloading.NeighborSampler(
            list(reversed(job.cell.fanouts)), fused=spec.fused
        )

    def sample(self, seeds: Tensor, epoch: int, number: int) -> DglBatch:
        """Draw a batch: input nodes, seeds and blocks as DGL returns them."""
        device = self.job.device
        seeds = seeds.to("cpu" if self._topology == "cpu" else device, self._id_type)
        nodes, seeds, blocks = self._sampler.sample(self._graph, seeds)
        if self._topology == "cpu" and device.type != "cpu":
            nodes, seeds = nodes.to(device), seeds.to(device)
            blocks = [block.to(device) for block in blocks]
        return DglBatch(self._dgl, number, seeds, nodes, blocks)

    @property
    def sampled_on(self) -> torch.device:
        """The GPU; the CPU with ``topology=cpu``."""
        return torch.device("cpu") if self._topology == "cpu" else self.job.device

    def graph_bytes(self) -> int:
        """Bytes of the topology, 0 unless it is in device memory."""
        if self._topology != "gpu":
            return 0
        graph = self.job.graph
        return (graph.indptr.numel() + graph.indices.numel()) * self._id_type.itemsize

    def close(self) -> None:
        """Unlock the topology."""
        if self._topology == "uva":
            self._graph.unpin_memory_()


def _on_device(ids: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Copy ``ids`` to a device and convert them there: int64 would double the transfer."""
    converted = torch.empty(ids.shape, dtype=dtype, device=device)
    for target, source in zip(converted.split(CHUNK), ids.split(CHUNK), strict=True):
        target.copy_(source.to(device))
    return converted


class DglBatch(Batch):
    """A batch of DGL; ``dgl_blocks`` are the inputs of DGL's layers, input layer first."""

    def __init__(
        self, dgl: ModuleType, number: int, seeds: Tensor, nodes: Tensor, blocks: list[DglBlock]
    ) -> None:
        self._dgl, self.number, self.seeds = dgl, number, seeds
        self._nodes, self.dgl_blocks = nodes, blocks

    @property
    def input_nodes(self) -> Tensor:
        """Global ids of the input block's sources."""
        return self._nodes

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The blocks as ``Block``; DGL also numbers destinations first."""
        nid = self._dgl.NID
        blocks = []
        for block in self.dgl_blocks:
            offsets, sources, _ = block.adj_tensors("csc")
            nodes = block.srcdata[nid]
            blocks.append(Block(offsets.int(), sources.int(), nodes, block.num_dst_nodes()))
        return blocks

    def sizes(self) -> Sizes:
        """Sizes by hop; DGL's frontier is cumulative, so a block is a hop."""
        nid = self._dgl.NID
        layers = [
            (b.dstdata[nid], b.num_dst_nodes(), b.num_edges()) for b in reversed(self.dgl_blocks)
        ]
        return Sizes(self.seeds, layers, self._nodes.numel())

    def hops(self) -> list[Hop]:
        """Edges of every hop; edge ids of a graph built from CSC are positions."""
        dgl = self._dgl
        hops = []
        for block in reversed(self.dgl_blocks):
            src, dst = block.edges()
            nodes, destinations = block.srcdata[dgl.NID], block.dstdata[dgl.NID]
            if src.numel() and int(src.max()) >= nodes.numel():
                raise Fault(
                    f"an edge's source has local id {int(src.max())} in a block of"
                    f" {nodes.numel()} source nodes"
                )
            hops.append(
                Hop(
                    dst=host_ids(destinations),
                    edge_dst=host_ids(destinations[dst.long()]),
                    edge_src=host_ids(nodes[src.long()]),
                    positions=host_ids(block.edata[dgl.EID]),
                )
            )
        return hops

    def tensors(self) -> list[Tensor]:
        """Empty: DGL does not expose the tensors of a block."""
        return []
