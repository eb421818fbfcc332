"""Any sampler behind DGL's ``Sampler``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.dgl_import import require_dgl
from gnnbench.models.convert import to_dgl
from gnnbench.sampling.edge_ids import EdgeIds, EdgeList, Ends, check_edge_ids
from gnnbench.sampling.loader import batch_number_in_share, task_number
from gnnbench.sampling.place import Place, Samples
from gnnbench.sampling.repeated import distinct, repeat_seeds

dgl: Any = require_dgl()
BlockSampler: Any = dgl.dataloading.BlockSampler
# Datasets of seeds that DGL divides among its workers by contiguous shares of batches.
SHARED_DATASETS = (
    dgl.dataloading.dataloader.TensorizedDataset,
    dgl.dataloading.dataloader.DDPTensorizedDataset,
)
# Options of DGL's NeighborSampler that the adapter does not have, and what to do about each.
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


@dataclass(frozen=True)
class EdgesById:
    """Ends of all edges of a DGL graph without COO, in which DGL finds no edge by its id."""

    graph: Any
    src: Tensor
    dst: Tensor

    @classmethod
    def of(cls, graph: Any) -> EdgesById:
        """Read them from the graph's CSC or CSR."""
        by_source = "csc" not in _formats(graph)
        indptr, indices, ids = graph.adj_tensors("csr" if by_source else "csc")
        rows = torch.arange(indptr.numel() - 1, device=indptr.device).repeat_interleave(
            indptr.diff()
        )
        ends = (rows, indices) if by_source else (indices, rows)
        if not ids.numel():  # in the order of their ids
            return cls(graph, *(t.long() for t in ends))
        found = [torch.empty(ids.numel(), dtype=torch.int64, device=ids.device) for _ in ends]
        for by_id, end in zip(found, ends, strict=True):
            by_id[ids.long()] = end.long()
        return cls(graph, *found)

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""
        at = ids.to(self.src.device).long()
        return self.src[at], self.dst[at]

    def every(self) -> Ends:
        """Sources and destinations of all edges in the order of their ids."""
        return self.src, self.dst


def _formats(graph: Any) -> set[str]:
    """Sparse formats that a graph has or may make."""
    return {name for names in graph.formats().values() for name in names}


@dataclass(frozen=True)
class GraphEdges:
    """Edges of a homogeneous DGL graph."""

    graph: Any

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""
        found: Ends = self.graph.find_edges(ids.to(self.graph.device, self.graph.idtype))
        return found

    def every(self) -> Ends:
        """Sources and destinations of all edges in the order of their ids."""
        found: Ends = self.graph.edges(order="eid")
        return found


class DglAdapter(BlockSampler):
    """A sampler for ``dgl.dataloading.DataLoader`` over a homogeneous graph.

    The topology is the sampler's own; the loader's graph, which must have the same edges, lends its
    node and edge data to the blocks. ``edge_ids`` says which edge of that graph lies at each
    position of the sampler's ``indices``; without it the adapter finds out. It checks the edges of
    every batch against the graph. Batches are on ``output_device``, by default the sampler's.

    A seed that repeats in a batch is a node for each occurrence, with the same sampled edges.

    Raises ``UsageError`` for edge ids or a graph that do not fit; ``UnsupportedError`` for what it
    does not do: heterogeneous graphs, ``exclude_eids``, and the options in ``REFUSED``.
    """

    def __init__(self, sampler: Samples, edge_ids: Tensor | None = None, **prefetch: Any) -> None:
        for name in prefetch:
            if name not in PREFETCH:
                why = REFUSED.get(name, f"as_dgl has {', '.join(PREFETCH)}")
                raise UnsupportedError(f"{name}: {why}")
        super().__init__(**prefetch)
        self._inner = sampler
        self._walks = sampler.pick == "random_walk"
        given = check_edge_ids(edge_ids, sampler.num_edges)
        self._edge_ids = EdgeIds(sampler, given)
        self._place = Place()
        self._by_id: EdgesById | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process reads the loader's graph there."""
        return {**self.__dict__, "_by_id": None}

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Which batch is drawn next; see :class:`gnnbench.sampling.place.Place`."""
        self._place.set_epoch(epoch, batch)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Tensor, Tensor, list[Any]]:
        """(input nodes, seeds, blocks), as DGL's samplers return them."""
        self._check(g, seed_nodes, exclude_eids)
        epoch, number = self._place.next(_batch_number)
        seeds, places = distinct(torch.as_tensor(seed_nodes))
        batch = self._inner.sample(seeds, epoch, number, with_positions=not self._walks)
        if places is not None:
            batch = repeat_seeds(batch, places)
        if self.output_device is not None:
            batch = batch.to(self.output_device)
        for ours in batch.blocks:
            ours.src_nodes = ours.src_nodes.to(g.idtype)
        self._name_edges(g, batch)
        input_nodes, output_nodes, blocks = to_dgl(batch)
        for block in blocks:
            _lend_frames(g, block)
        return input_nodes, output_nodes, blocks

    def _check(self, g: Any, seed_nodes: Any, exclude_eids: Any) -> None:
        if exclude_eids is not None:
            raise UnsupportedError(
                "exclude_eids: this sampler leaves no edges out; use exclude=None or DGL's sampler"
            )
        if not g.is_homogeneous or isinstance(seed_nodes, dict):
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

    def _name_edges(self, g: Any, batch: MiniBatch) -> None:
        """Put the graph's edge ids in the place of positions."""
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

    def _edges_of(self, g: Any) -> EdgeList:
        if "coo" in _formats(g):
            return GraphEdges(g)
        if self._by_id is None or self._by_id.graph is not g:
            self._by_id = EdgesById.of(g)
        return self._by_id


def _batch_number() -> int:
    """The batch's place among the seeds, whichever worker draws it."""
    info: Any = get_worker_info()
    if isinstance(info.dataset, SHARED_DATASETS):
        return batch_number_in_share(len(info.dataset))
    return task_number()


def _lend_frames(g: Any, block: Any) -> None:
    """Rows of the graph's node and edge data, read when asked for, as DGL's samplers lend them."""
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
