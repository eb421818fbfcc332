"""How often an edge is in a graph, found in rows that are in order, whatever their length."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.datasets.graph import Graph

CHUNK = 1 << 24  # edges looked at, or sorted, at once


class Edges:
    """The edges of a graph by destination and neighbour.

    ``weighs`` bool ``[num_edges]``: of which edges alone. Where the graph's rows are not in the
    order of their neighbours a copy of them is, made here; ``places``: that remembers where its
    edges are in the graph, for ``at``.
    """

    def __init__(self, graph: Graph, weighs: Tensor | None = None, places: bool = False) -> None:
        self._indptr, self._indices, self._weighs = graph.indptr, graph.indices, weighs
        self._places: Tensor | None = None
        if not _in_order(self._indptr, self._indices):
            kept = torch.arange(self._indices.numel()) if places else weighs
            self._indices, moved = _ordered(self._indptr, self._indices, kept)
            self._places, self._weighs = (moved, None) if places else (None, moved)

    def at(self, dst: Tensor, src: Tensor, nth: Tensor) -> Tensor:
        """Where in ``indices`` the ``nth[i]``-th edge of ``dst[i]`` to ``src[i]`` is, from 0 on.

        -1 where there is none. All int64 ``[n]``, on the CPU.
        """
        end = self._indptr[dst + 1]
        position = self._first(self._indptr[dst], end, src) + nth
        there = self._is(position, end, src)
        at = (
            position
            if self._places is None
            else self._places[position.clamp(max=len(self._places) - 1)]
        )
        return torch.where(there, at, -1)

    def times(self, dst: Tensor, src: Tensor) -> Tensor:
        """How often ``src[i]`` is a neighbour of ``dst[i]``; all int64 ``[n]``, on the CPU."""
        begin, end = self._indptr[dst], self._indptr[dst + 1]
        first = self._first(begin, end, src)
        last = first + self._is(first, end, src).long()
        more = self._is(last, end, src).nonzero().squeeze(1)  # few edges are next to an equal one
        last[more] = self._first(last[more], end[more], src[more] + 1)
        if self._weighs is None:
            return last - first
        counts = last - first
        owner = torch.arange(dst.numel()).repeat_interleave(counts)
        at = torch.arange(owner.numel()) + (first - (counts.cumsum(0) - counts))[owner]
        return torch.zeros_like(counts).index_add_(0, owner, self._weighs[at].long())

    def _first(self, low: Tensor, high: Tensor, least: Tensor) -> Tensor:
        """First place of ``[low, high)`` whose neighbour is ``least`` or more, else ``high``."""
        at = low.clone()
        left = (low < high).nonzero().squeeze(1)
        low, high, least = low[left], high[left], least[left]
        while left.numel():  # most rows are short: they are done with soon
            middle = (low + high) // 2
            below = self._indices[middle] < least
            low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
            at[left] = low
            open_ = low < high
            left, low, high, least = left[open_], low[open_], high[open_], least[open_]
        return at

    def _is(self, at: Tensor, end: Tensor, src: Tensor) -> Tensor:
        """Whether the edge ``at``, below ``end``, is one to ``src``."""
        there = at < end
        there[there.clone()] = self._indices[at[there]] == src[there]
        return there


def _in_order(indptr: Tensor, indices: Tensor) -> bool:
    begins = indptr[1:-1]
    for start in range(0, indices.numel() - 1, CHUNK):
        part = indices[start : start + CHUNK + 1]
        falls = part[1:] < part[:-1]  # from start + 1 on
        inside = begins[torch.searchsorted(begins, start + 1) :]
        inside = inside[: torch.searchsorted(inside, start + part.numel())]
        falls[inside - start - 1] = False
        if bool(falls.any()):
            return False
    return True


def _ordered(
    indptr: Tensor, indices: Tensor, weighs: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Rows in order and what belongs to their edges; whole rows at once."""
    found, moved = torch.empty_like(indices), None if weighs is None else torch.empty_like(weighs)
    row, rows = 0, indptr.numel() - 1
    while row < rows:
        start = int(indptr[row])
        end_row = max(int(torch.searchsorted(indptr, start + CHUNK, right=True)) - 1, row + 1)
        end = int(indptr[end_row])
        owner = torch.arange(end_row - row).repeat_interleave(indptr[row : end_row + 1].diff())
        size = int(indices[start:end].max()) + 1 if end > start else 1
        order = (owner * size + indices[start:end]).argsort()
        found[start:end] = indices[start:end][order]
        if moved is not None and weighs is not None:
            moved[start:end] = weighs[start:end][order]
        row = end_row
    return found, moved
