"""Edge ids of a user's graph by position in the sampler's ``indices``."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.picks import WEIGHTED
from gnnbench.sampling.supports_sampling import SupportsSampling
from gnnbench.validation.law import BY_WEIGHT

Ends = tuple[Tensor, Tensor]  # sources and destinations


def check_edge_ids(edge_ids: object, num_edges: int) -> Tensor | None:
    """Return edge ids by position, int64 ``[num_edges]`` on the CPU, or None.

    Raises ``UsageError`` unless they are a permutation of 0 to ``num_edges - 1``.
    """
    if edge_ids is None:
        return None
    if isinstance(edge_ids, np.ndarray) and edge_ids.dtype in (np.int32, np.int64):
        edge_ids = torch.from_numpy(np.ascontiguousarray(edge_ids))
    if not isinstance(edge_ids, Tensor) or edge_ids.dtype not in (torch.int32, torch.int64):
        raise UsageError("edge_ids must be an int32 or int64 tensor")
    if edge_ids.shape != (num_edges,):
        raise UsageError(
            f"edge_ids must be one id for each of {num_edges} edges, they are"
            f" {list(edge_ids.shape)}"
        )
    ids = edge_ids.detach().cpu().long().contiguous()
    if num_edges and (int(ids.min()) < 0 or int(ids.max()) >= num_edges):
        wrong = ids[(ids < 0) | (ids >= num_edges)][0]
        raise UsageError(
            f"edge_ids holds {int(wrong)}; the ids of {num_edges} edges are 0 to {num_edges - 1}"
        )
    seen = torch.zeros(num_edges, dtype=torch.bool)
    seen[ids] = True
    if not bool(seen.all()):
        raise UsageError("edge_ids holds an id twice; each edge has one position")
    return ids


class EdgeList(Protocol):
    """The edges of a user's graph."""

    def find(self, ids: Tensor) -> Ends:
        """Sources and destinations of the edges with these ids."""

    def every(self) -> Ends:
        """Sources and destinations of all edges, in the order of their ids."""


class EdgeIds:
    """Edge ids of sampled edges, checked against the loader's graph.

    ``user_ids`` are the user's ids by position. Without them positions serve as ids if they match
    the graph. Otherwise the ids are derived once: edges are matched by source and destination,
    parallel edges in their order. A sampler that draws by weights distinguishes parallel edges, so
    then the user must give the ids.
    """

    def __init__(self, sampler: SupportsSampling, user_ids: Tensor | None) -> None:
        self._sampler = sampler
        self._weighted = sampler.pick in WEIGHTED or getattr(sampler, "law", "") == BY_WEIGHT
        self._are_user_ids = user_ids is not None
        self._ids = user_ids

    def of(self, positions: Tensor, ends: Ends, graph: EdgeList) -> Tensor:
        """Ids int64 ``[n]`` of the edges at ``positions`` in the user's ``graph``.

        ``ends`` are their global sources and destinations. Raises ``UsageError`` if the user's ids
        belong to other edges, or if graph and sampler have different edges.
        """
        ids = self.unchecked(positions)
        if _same(graph.find(ids), ends):
            return ids
        if self._are_user_ids:
            raise UsageError(
                "edge_ids are of other edges than the sampler's: an id's edge has other ends in the"
                " loader's graph; give the id of the edge at each position of indices"
            )
        self.derive(graph.every())
        ids = self.unchecked(positions)
        if not _same(graph.find(ids), ends):
            raise UsageError(_OTHER_GRAPH)
        return ids

    def derive(self, edges: Ends) -> None:
        """Match the user's edges; sources and destinations are in the order of their ids."""
        src, dst = (t.detach().cpu().long() for t in edges)
        indptr, indices = self._sampler.indptr.cpu(), self._sampler.indices.cpu().long()
        num_nodes = indptr.numel() - 1
        if src.numel() != indices.numel() or (
            src.numel() and int(torch.stack([src, dst]).max()) >= num_nodes
        ):
            raise UsageError(_OTHER_GRAPH)
        columns = torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())
        ours, theirs = columns * num_nodes + indices, dst * num_nodes + src
        sorted_ours, at = ours.sort(stable=True)
        sorted_theirs, ids = theirs.sort(stable=True)
        if not torch.equal(sorted_ours, sorted_theirs):
            raise UsageError(_OTHER_GRAPH)
        derived = torch.empty_like(ids)
        derived[at] = ids
        if self._weighted and bool((sorted_ours[1:] == sorted_ours[:-1]).any()):
            raise UsageError(
                "edge_ids cannot be derived: the graph has parallel edges, and the sampler's"
                " weights tell them apart; give edge_ids"
            )
        self._ids = derived

    def unchecked(self, positions: Tensor) -> Tensor:
        """The ids at ``positions``; the positions themselves if no ids are known."""
        if self._ids is None:
            return positions
        if self._ids.device != positions.device:
            self._ids = self._ids.to(positions.device)
        return self._ids[positions]


_OTHER_GRAPH = (
    "the loader's graph has other edges than the sampler's; build the sampler from that graph, with"
    " its in-neighbours by destination as (indptr, indices)"
)


def _same(actual: Ends, wanted: Ends) -> bool:
    return all(
        torch.equal(a.to(b.device).long(), b.long()) for a, b in zip(actual, wanted, strict=True)
    )
