"""Aggregation on a block, one destination after the other, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.minibatch import Block


def matrix(block: Block, mode: str) -> Tensor:
    """The aggregation as a dense float64 matrix ``[num_dst, num_src]``; parallel edges add up."""
    a = torch.zeros(block.num_dst, block.num_src, dtype=torch.float64)
    offsets, sources = block.indptr.tolist(), block.indices.tolist()
    for v in range(block.num_dst):
        row = sources[offsets[v] : offsets[v + 1]]
        for u in row:
            a[v, u] += 1
        if mode == "gcn":
            a[v, v] += 1
            a[v] /= len(row) + 1
        elif mode == "mean" and row:
            a[v] /= len(row)
    return a


def aggregate(block: Block, x: Tensor, mode: str) -> Tensor:
    """As :func:`gnnbench.ops.aggregate.aggregate`, float64 ``[num_dst, dim]``.

    Differentiable by autograd, so it is the reference of the backward, too.
    """
    return matrix(block, mode) @ x.to(torch.float64)
