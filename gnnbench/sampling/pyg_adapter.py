"""Any sampler behind PyG's ``BaseSampler``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.models.convert import joined
from gnnbench.sampling.edge_ids import EdgeIds, Ends, check_edge_ids
from gnnbench.sampling.loader import calling
from gnnbench.sampling.place import Place, Samples
from gnnbench.sampling.repeated import distinct, repeat_seeds

# Options of PyG's NeighborLoader that the adapter does not have, and what to do about each.
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

    ``SamplerOutput`` is in PyG's form as :func:`gnnbench.to_pyg` describes it, on the CPU, where
    PyG's loader looks for the rows of features. ``edge_ids`` and ``data`` say which edge of the
    user's graph lies at each position of the sampler's ``indices``. Without them the adapter looks
    at the data of the loader that calls it. It checks the edges of every batch against that data,
    unless it is called directly. Random walks have no edges of the graph, so no edge ids.

    A seed that repeats in a batch is a node for each occurrence, with the same sampled edges.

    Raises ``UsageError`` for edge ids that are not those of the sampler's edges, and for data with
    other nodes or edges; ``UnsupportedError`` for what it does not do: heterogeneous graphs,
    times of seeds, link-level sampling, PyG's ``NeighborLoader``, and the options in ``REFUSED``.
    """

    def __init__(
        self, sampler: Samples, edge_ids: Tensor | None = None, data: Any = None, **options: Any
    ) -> None:
        super().__init__()
        _refuse(options)
        self._inner = sampler
        self._walks = sampler.pick == "random_walk"
        given = check_edge_ids(edge_ids, sampler.num_edges)
        self._edge_ids = EdgeIds(sampler, given)
        self._place = Place()
        if data is not None:
            edges = self._edges_of(data)
            if edges is None:
                raise UsageError("data has no edge_index; leave it out or give edge_ids")
            if given is None:
                self._edge_ids.derive(edges.every())

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Which batch is drawn next; see :class:`gnnbench.sampling.place.Place`."""
        self._place.set_epoch(epoch, batch)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's form of the batch: local rows and columns, global nodes, edge ids."""
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
        loader = calling(NodeLoader.collate_fn)
        if isinstance(loader, NeighborLoader):
            raise UnsupportedError(
                "NeighborLoader's own options, such as num_neighbors and disjoint, do not reach"
                " this sampler; use NodeLoader with the same data and input_nodes"
            )
        edges = None if loader is None else self._edges_of(loader.data)
        epoch, number = self._place.next()
        seeds, places = distinct(index.node)
        batch = self._inner.sample(seeds, epoch, number, with_positions=not self._walks).to("cpu")
        if places is not None:
            batch = repeat_seeds(batch, places)
        whole = joined(batch)
        nodes = batch.input_nodes.long()
        ids = whole.positions
        if ids is not None:
            ends = nodes[whole.row], nodes[whole.col]
            known = self._edge_ids
            ids = known.unchecked(ids) if edges is None else known.of(ids, ends, edges)
        return SamplerOutput(
            node=nodes,
            row=whole.row,
            col=whole.col,
            edge=ids,
            num_sampled_nodes=whole.nodes_by_hop,
            num_sampled_edges=whole.edges_by_hop,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: Any, **kwargs: Any) -> SamplerOutput:
        """Raise ``UnsupportedError``: link-level sampling is not supported."""
        raise UnsupportedError(
            "this sampler samples from nodes, not from links; use NodeLoader, or PyG's"
            " LinkNeighborLoader"
        )

    def _edges_of(self, data: Any) -> CooEdges | None:
        """The data's edges in the order of their ids, or None.

        Raises ``UsageError`` where the data does not fit the sampler, ``UnsupportedError`` where
        the adapter cannot read it.
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
        found = (data.num_nodes, edges.src.numel())
        wanted = (self._inner.num_nodes, self._inner.num_edges)
        if found != wanted:
            raise UsageError(
                f"the loader's data has {found[0]} nodes and {found[1]} edges where the sampler's"
                f" graph has {wanted[0]} and {wanted[1]}; build the sampler from that graph"
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


def _refuse(options: dict[str, Any]) -> None:
    for name in options:
        raise UnsupportedError(f"{name}: {REFUSED.get(name, 'as_pyg has no such option')}")
