"""Adapter of any sampler to PyG's ``BaseSampler`` interface."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.models.convert import joined
from gnnbench.sampling.batch_counter import BatchCounter
from gnnbench.sampling.edge_ids import EdgeIds, Ends, check_edge_ids
from gnnbench.sampling.loader import caller_of
from gnnbench.sampling.repeated import distinct, repeat_seeds
from gnnbench.sampling.supports_sampling import SupportsSampling

# Unsupported options of PyG's NeighborLoader, and the remedy for each.
REFUSED = {
    "disjoint": "one subgraph for each seed is not supported",
    "subgraph_type": "only the directional subgraph is supported",
    "directed": "only the directional subgraph is supported",
    "time_attr": "sampling by time is not supported",
    "temporal_strategy": "sampling by time is not supported",
    "replace": "give build_sampler pick='with_replacement'",
    "weight_attr": "give build_sampler weights= and a weighted pick",
    "num_neighbors": "give build_sampler the fanouts",
    "is_sorted": "edge ids say how the edges are ordered",
    "share_memory": "the sampler's tensors are sent to workers in shared memory",
}


@dataclass(frozen=True)
class CooEdges:
    """Edges of a ``Data`` in the order of their ids."""

    src: Tensor
    dst: Tensor

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""
        at = ids.to(self.src.device)
        return self.src[at], self.dst[at]

    def every(self) -> Ends:
        """Sources and destinations of all edges."""
        return self.src, self.dst


class PygAdapter(BaseSampler):
    """A sampler for ``torch_geometric.loader.NodeLoader`` over a homogeneous ``Data``.

    ``SamplerOutput`` has the form of :func:`gnnbench.to_pyg`, on the CPU, where PyG's loader
    gathers features. ``edge_ids`` or ``data`` give the user's edge at each position of the
    sampler's ``indices``; without them the adapter reads the data of the calling loader. Unless it
    is called directly, it checks every batch's edges against that data. Random walks have no edge
    ids.

    A seed that repeats in a batch is one node for each occurrence, with the same sampled edges.

    Raises ``UsageError`` for edge ids or data that do not fit the sampler's graph, and
    ``UnsupportedError`` for heterogeneous graphs, times of seeds, link-level sampling, PyG's
    ``NeighborLoader`` and the options in ``REFUSED``.
    """

    def __init__(
        self,
        sampler: SupportsSampling,
        edge_ids: Tensor | None = None,
        data: object = None,
        **options: object,
    ) -> None:
        super().__init__()
        _refuse(options)
        self._inner = sampler
        self._walks = sampler.pick == "random_walk"
        user_ids = check_edge_ids(edge_ids, sampler.num_edges)
        self._edge_ids = EdgeIds(sampler, user_ids)
        self._counter = BatchCounter()
        if data is not None:
            edges = self._edges_of(data)
            if edges is None:
                raise UsageError("data has no edge_index; leave it out or give edge_ids")
            if user_ids is None:
                self._edge_ids.derive(edges.every())

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Set the next batch; see :class:`gnnbench.sampling.batch_counter.BatchCounter`."""
        self._counter.set_epoch(epoch, batch)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: object) -> SamplerOutput:
        """Sample a batch in PyG's form: local rows and columns, global nodes, edge ids."""
        _refuse(kwargs)
        if index.input_type is not None:
            raise UnsupportedError(
                f"input_nodes are of type '{index.input_type}': this sampler has one kind of node"
                " and edge; convert the data with HeteroData.to_homogeneous()"
            )
        if index.time is not None:
            raise UnsupportedError(
                "input_time: this sampler does not compare times of seeds and edges; leave it out,"
                " or use PyG's NeighborLoader with time_attr"
            )
        loader = caller_of(NodeLoader.collate_fn)
        if isinstance(loader, NeighborLoader):
            raise UnsupportedError(
                "NeighborLoader's own options, such as num_neighbors and disjoint, do not reach"
                " this sampler; use NodeLoader with the same data and input_nodes"
            )
        edges = self._edges_of(loader.data) if isinstance(loader, NodeLoader) else None
        epoch, number = self._counter.next()
        seeds, occurrences = distinct(index.node)
        batch = self._inner.sample(seeds, epoch, number, with_positions=not self._walks).to("cpu")
        if occurrences is not None:
            batch = repeat_seeds(batch, occurrences)
        subgraph = joined(batch)
        nodes = batch.input_nodes.long()
        ids = subgraph.positions
        if ids is not None:
            ends = nodes[subgraph.row], nodes[subgraph.col]
            known = self._edge_ids
            ids = known.unchecked(ids) if edges is None else known.of(ids, ends, edges)
        return SamplerOutput(
            node=nodes,
            row=subgraph.row,
            col=subgraph.col,
            edge=ids,
            num_sampled_nodes=subgraph.nodes_by_hop,
            num_sampled_edges=subgraph.edges_by_hop,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: object, **kwargs: object) -> SamplerOutput:
        """Raise ``UnsupportedError``: link-level sampling is not supported."""
        raise UnsupportedError(
            "this sampler samples from nodes, not from links; use NodeLoader, or PyG's"
            " LinkNeighborLoader"
        )

    def _edges_of(self, data: object) -> CooEdges | None:
        """The data's edges in the order of their ids, or None.

        Raises ``UsageError`` if the data does not fit the sampler, ``UnsupportedError`` if the
        adapter cannot read it.
        """
        if not isinstance(data, Data):
            raise UnsupportedError(
                f"the loader's data is a {type(data).__name__}: this sampler is for a homogeneous"
                " torch_geometric Data; convert a HeteroData with to_homogeneous()"
            )
        stored = sorted(key for key in data.keys() if key.startswith("edge_"))  # noqa: SIM118
        if self._walks and [key for key in stored if key not in ("edge_index", "edge_label")]:
            raise UnsupportedError(
                f"pick 'random_walk' gives no edges of the graph, and the data has {stored};"
                " remove it from the data or choose another pick"
            )
        edges = _coo(data)
        if edges is None:
            if stored:
                raise UsageError(f"the data has {stored} but no edge_index that says which edges")
            return None
        nodes, num_edges = self._inner.num_nodes, self._inner.num_edges
        if (data.num_nodes, edges.src.numel()) != (nodes, num_edges):
            raise UsageError(
                f"the loader's data has {data.num_nodes} nodes and {edges.src.numel()} edges where"
                f" the sampler's graph has {nodes} and {num_edges}; build the sampler from that"
                " graph"
            )
        return edges


def _coo(data: Data) -> CooEdges | None:
    if "edge_index" in data and data.edge_index is not None:
        edges = data.edge_index
        if not isinstance(edges, Tensor) or edges.ndim != 2 or edges.shape[0] != 2:
            raise UsageError("edge_index must be a tensor [2, num_edges]")
        return CooEdges(edges[0], edges[1])
    if "adj_t" not in data:
        return None
    if isinstance(data.adj_t, Tensor):
        raise UnsupportedError(
            "adj_t is a torch.sparse tensor; give the data an edge_index or a torch_sparse adj_t"
        )
    dst, src, _ = data.adj_t.coo()
    return CooEdges(src, dst)


def _refuse(options: dict[str, object]) -> None:
    for name in options:
        raise UnsupportedError(f"{name}: {REFUSED.get(name, 'as_pyg has no such option')}")
