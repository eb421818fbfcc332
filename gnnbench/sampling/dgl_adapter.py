"""Adapter of any sampler to DGL's ``Sampler`` interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.dgl_import import require_dgl
from gnnbench.kernels.dgl_types import DglBlock, DglGraph
from gnnbench.models.convert import to_dgl
from gnnbench.sampling.batch_counter import BatchCounter
from gnnbench.sampling.edge_ids import EdgeIds, EdgeList, Ends, check_edge_ids
from gnnbench.sampling.loader import batch_number_in_shard, task_number
from gnnbench.sampling.repeated import distinct, repeat_seeds
from gnnbench.sampling.supports_sampling import SupportsSampling

dgl = require_dgl()
BlockSampler: type = dgl.dataloading.BlockSampler
# Seed datasets that DGL divides among its workers into contiguous shards of batches.
SHARDED_DATASETS = (
    dgl.dataloading.dataloader.TensorizedDataset,
    dgl.dataloading.dataloader.DDPTensorizedDataset,
)
# Unsupported options of DGL's NeighborSampler, and the remedy for each.
REFUSED = {
    "edge_dir": "edges are sampled towards the seeds; reverse the graph for edge_dir='out'",
    "prob": "give build_sampler weights= and a weighted pick",
    "mask": "sample a graph without the masked edges",
    "replace": "give build_sampler pick='with_replacement'",
    "exclude": "this sampler leaves no edges out",
    "fanouts": "give build_sampler the fanouts",
    "fused": "the sampler's name says how it samples",
    "mapping": "the sampler's name says how it samples",
}
PREFETCH = ("prefetch_node_feats", "prefetch_labels", "prefetch_edge_feats", "output_device")


SeedNodes = Tensor | Sequence[int] | Mapping[str, Tensor]  # a mapping where heterogeneous


@dataclass(frozen=True)
class EdgesById:
    """Endpoints of a DGL graph without COO; DGL cannot look up its edges by id."""

    graph: DglGraph
    src: Tensor
    dst: Tensor

    @classmethod
    def of(cls, graph: DglGraph) -> EdgesById:
        """Read them from the graph's CSC or CSR."""
        by_source = "csc" not in _formats(graph)
        indptr, indices, ids = graph.adj_tensors("csr" if by_source else "csc")
        rows = torch.arange(indptr.numel() - 1, device=indptr.device).repeat_interleave(
            indptr.diff()
        )
        ends = (rows, indices) if by_source else (indices, rows)
        if not ids.numel():  # edges are ordered by id
            return cls(graph, *(t.long() for t in ends))
        ends_by_id = [torch.empty(ids.numel(), dtype=torch.int64, device=ids.device) for _ in ends]
        for by_id, end in zip(ends_by_id, ends, strict=True):
            by_id[ids.long()] = end.long()
        return cls(graph, *ends_by_id)

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""
        at = ids.to(self.src.device).long()
        return self.src[at], self.dst[at]

    def every(self) -> Ends:
        """Sources and destinations of all edges in the order of their ids."""
        return self.src, self.dst


def _formats(graph: DglGraph) -> set[str]:
    """Sparse formats that a graph has or can create."""
    return {name for names in graph.formats().values() for name in names}


@dataclass(frozen=True)
class GraphEdges:
    """Edges of a homogeneous DGL graph."""

    graph: DglGraph

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""
        return self.graph.find_edges(ids.to(self.graph.device, self.graph.idtype))

    def every(self) -> Ends:
        """Sources and destinations of all edges in the order of their ids."""
        return self.graph.edges(order="eid")


class DglAdapter(BlockSampler):
    """A sampler for ``dgl.dataloading.DataLoader`` over a homogeneous graph.

    The sampler has its own topology. The loader's graph must have the same edges; its node and edge
    data become the data of the blocks. ``edge_ids`` gives the edge of that graph at each position
    of the sampler's ``indices``; without it the adapter derives them. The edges of every batch are
    checked against the graph. Batches are on ``output_device``, by default the sampler's device.

    A seed that repeats in a batch is one node for each occurrence, with the same sampled edges.

    Raises ``UsageError`` for edge ids or a graph that do not fit, and ``UnsupportedError`` for
    heterogeneous graphs, ``exclude_eids`` and the options in ``REFUSED``.
    """

    def __init__(
        self, sampler: SupportsSampling, edge_ids: Tensor | None = None, **prefetch: object
    ) -> None:
        for name in prefetch:
            if name not in PREFETCH:
                remedy = REFUSED.get(name, f"as_dgl has {', '.join(PREFETCH)}")
                raise UnsupportedError(f"{name}: {remedy}")
        super().__init__(**prefetch)
        self._inner = sampler
        self._walks = sampler.pick == "random_walk"
        self._edge_ids = EdgeIds(sampler, check_edge_ids(edge_ids, sampler.num_edges))
        self._counter = BatchCounter()
        self._by_id: EdgesById | None = None

    def __getstate__(self) -> dict[str, object]:
        """A copy in another process reads the loader's graph itself."""
        return {**self.__dict__, "_by_id": None}

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Set the next batch; see :class:`gnnbench.sampling.batch_counter.BatchCounter`."""
        self._counter.set_epoch(epoch, batch)

    def sample_blocks(
        self, g: DglGraph, seed_nodes: SeedNodes, exclude_eids: object = None
    ) -> tuple[Tensor, Tensor, list[DglBlock]]:
        """(input nodes, seeds, blocks), as DGL's samplers return them."""
        seed_ids = self._checked_seeds(g, seed_nodes, exclude_eids)
        epoch, number = self._counter.next(_batch_number)
        seeds, occurrences = distinct(torch.as_tensor(seed_ids))
        batch = self._inner.sample(seeds, epoch, number, with_positions=not self._walks)
        if occurrences is not None:
            batch = repeat_seeds(batch, occurrences)
        if self.output_device is not None:
            batch = batch.to(self.output_device)
        for block in batch.blocks:
            block.src_nodes = block.src_nodes.to(g.idtype)
        self._positions_to_edge_ids(g, batch)
        input_nodes, output_nodes, blocks = to_dgl(batch)
        for dgl_block in blocks:
            _attach_frames(g, dgl_block)
        return input_nodes, output_nodes, blocks

    def _checked_seeds(
        self, g: DglGraph, seed_nodes: SeedNodes, exclude_eids: object
    ) -> Tensor | Sequence[int]:
        if exclude_eids is not None:
            raise UnsupportedError(
                "exclude_eids: this sampler leaves no edges out; use exclude=None or DGL's sampler"
            )
        if not g.is_homogeneous or isinstance(seed_nodes, Mapping):
            raise UnsupportedError(
                "the loader's graph has several types of nodes or edges, this sampler has one;"
                " convert it with dgl.to_homogeneous"
            )
        nodes, edges = self._inner.num_nodes, self._inner.num_edges
        if (g.num_nodes(), g.num_edges()) != (nodes, edges):
            raise UsageError(
                f"the loader's graph has {g.num_nodes()} nodes and {g.num_edges()} edges where the"
                f" sampler's has {nodes} and {edges}; build the sampler from that graph"
            )
        return seed_nodes

    def _positions_to_edge_ids(self, g: DglGraph, batch: MiniBatch) -> None:
        """Replace the blocks' positions by the graph's edge ids."""
        edges = self._edges_of(g)
        for block in batch.blocks:
            if block.positions is None:
                continue
            rows = torch.arange(block.num_dst, device=block.indptr.device)
            columns = rows.repeat_interleave(block.indptr.diff().long())
            nodes = block.src_nodes
            block.positions = self._edge_ids.of(
                block.positions,
                (nodes[block.indices.long()], nodes[columns]),
                edges,
            )

    def _edges_of(self, g: DglGraph) -> EdgeList:
        if "coo" in _formats(g):
            return GraphEdges(g)
        if self._by_id is None or self._by_id.graph is not g:
            self._by_id = EdgesById.of(g)
        return self._by_id


def _batch_number() -> int:
    """The batch's position in the order of the seeds, for any worker."""
    info = get_worker_info()
    if info is not None and isinstance(info.dataset, SHARDED_DATASETS):
        return batch_number_in_shard(len(info.dataset))
    return task_number()


def _attach_frames(g: DglGraph, block: DglBlock) -> None:
    """Attach the graph's node and edge data as lazily read frames, as DGL's samplers do."""
    weights = block.edata.get("weights")
    nodes = dgl.utils.extract_node_subframes_for_block(
        g, [block.srcdata[dgl.NID]], [block.dstdata[dgl.NID]]
    )
    edges = None
    if dgl.EID in block.edata:
        edges = dgl.utils.extract_edge_subframes(g, [block.edata[dgl.EID]])
    dgl.utils.set_new_frames(block, node_frames=nodes, edge_frames=edges)
    if weights is not None:
        block.edata["weights"] = weights
