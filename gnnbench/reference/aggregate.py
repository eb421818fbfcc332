"""Aggregation on a block, one destination after the other, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.minibatch import Block


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
