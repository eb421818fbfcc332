"""Aggregation on a block, destination by destination, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block


def matrix(block: Block, mode: str, edge_weight: Tensor | None = None) -> Tensor:
    """The aggregation as a dense float64 matrix ``[num_dst, num_src]``; parallel edges add up.

    With ``edge_weight`` ``[num_edges]``, each above 0, an edge counts as its weight, and a
    destination's degree is the sum of its weights.
    """
    a = torch.zeros(block.num_dst, block.num_src, dtype=torch.float64)
    offsets, sources = block.indptr.tolist(), block.indices.tolist()
    weights = torch.ones(len(sources)) if edge_weight is None else edge_weight
    weights = weights.to(torch.float64)
    for v in range(block.num_dst):
        row = range(offsets[v], offsets[v + 1])
        for e in row:
            a[v, sources[e]] += weights[e]
        degree = weights[offsets[v] : offsets[v + 1]].sum()
        if mode == "gcn":
            a[v, v] += 1
            a[v] /= degree + 1
        elif mode == "mean" and row:
            a[v] /= degree
    return a


def aggregate(block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None) -> Tensor:
    """As :class:`gnnbench.models.native.Aggregate` says, float64 ``[num_dst, dim]``.

    Differentiable by autograd in ``x`` and ``edge_weight``, so it is the reference of the backward,
    too.
    """
    return matrix(block, mode, edge_weight) @ x.to(torch.float64)


def transpose(block: Block) -> tuple[list[int], list[int], list[int]]:
    """Offsets by source, then destinations and numbers of its edges in the order of the edges."""
    offsets, sources = block.indptr.tolist(), block.indices.tolist()
    by_source: list[list[tuple[int, int]]] = [[] for _ in range(block.num_src)]
    for v in range(block.num_dst):
        for e in range(offsets[v], offsets[v + 1]):
            by_source[sources[e]].append((v, e))
    starts = [0]
    for edges in by_source:
        starts.append(starts[-1] + len(edges))
    flat = [edge for edges in by_source for edge in edges]
    return starts, [v for v, _ in flat], [e for _, e in flat]


def edge_add(block: Block, src: Tensor, dst: Tensor) -> Tensor:
    """``src[u] + dst[v]`` at each edge (u, v): float64 ``[num_edges, heads]``, by autograd
    differentiable in both."""
    offsets = block.indptr.tolist()
    rows = [
        src[u].to(torch.float64) + dst[v].to(torch.float64)
        for v in range(block.num_dst)
        for u in block.indices[offsets[v] : offsets[v + 1]].tolist()
    ]
    return torch.stack(rows) if rows else torch.zeros(0, src.shape[1], dtype=torch.float64)


def edge_softmax(block: Block, scores: Tensor) -> Tensor:
    """Softmax of ``scores`` over each destination's edges, float64, differentiable by autograd."""
    offsets = block.indptr.tolist()
    rows = [
        torch.softmax(scores[offsets[v] : offsets[v + 1]].to(torch.float64), dim=0)
        for v in range(block.num_dst)
    ]
    return torch.cat(rows) if rows else scores.to(torch.float64)


def aggregate_heads(block: Block, x: Tensor, weights: Tensor) -> Tensor:
    """Each head's sum weighted by its column of ``weights``: float64 ``[num_dst, heads, width]``,
    differentiable by autograd in both."""
    x, heads = x.to(torch.float64), range(x.shape[1])
    sums = [aggregate(block, x[:, h], "sum", weights[:, h]) for h in heads]
    return torch.stack(sums, dim=1) if sums else x.new_zeros(block.num_dst, 0, x.shape[2])
