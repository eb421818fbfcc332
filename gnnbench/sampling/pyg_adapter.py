"""Any sampler behind PyG's ``BaseSampler``."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from gnnbench.convert import joined
from gnnbench.errors import UnsupportedError
from gnnbench.sampling.place import Place, Samples, check_edge_ids


class PygSampler(BaseSampler):
    """A sampler for ``torch_geometric.loader.NodeLoader``.

    ``SamplerOutput`` is in PyG's form as :func:`gnnbench.to_pyg` describes it, on the CPU, where
    PyG's loader looks for the rows of features; the loader's ``data`` must have an ``edge_index``,
    which is not read. Edges are those that ``edge_ids`` names (``e_id`` of the loader's batches);
    random walks have none. PyG does not tell a sampler which batch it draws: batches count from
    ``set_epoch`` on (see there).
    """

    def __init__(self, sampler: Samples, edge_ids: Tensor | None = None) -> None:
        super().__init__()
        self._inner = sampler
        self._edge_ids = check_edge_ids(edge_ids, sampler.num_edges)
        self._place = Place()

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Which batch is drawn next; see :class:`gnnbench.sampling.place.Place`."""
        self._place.set_epoch(epoch, batch)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's form of the batch: local rows and columns, global nodes, edge ids."""
        epoch, number = self._place.next()
        walks = self._inner.pick == "random_walk"
        batch = self._inner.sample(index.node, epoch, number, with_positions=not walks).to("cpu")
        whole = joined(batch)
        return SamplerOutput(
            node=batch.input_nodes.long(),
            row=whole.row,
            col=whole.col,
            edge=whole.positions,
            num_sampled_nodes=whole.nodes_by_hop,
            num_sampled_edges=whole.edges_by_hop,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: Any, **kwargs: Any) -> SamplerOutput:
        """Link-level sampling is no part of the suite."""
        raise UnsupportedError("this sampler samples from nodes; use NodeLoader")

    @property
    def edge_permutation(self) -> Tensor | None:
        """Edge id of each position, by which PyG reads edge data."""
        return self._edge_ids
