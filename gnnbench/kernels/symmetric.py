"""Weights of a block's edges by the degrees of both ends (Kipf and Welling, ICLR 2017, Eq. 2)."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.library import native_operators


def symmetric_factors(block: Block) -> tuple[Tensor, Tensor]:
    """Inverse square roots of degrees: float32 ``[num_src]`` by the edges that begin at a source,
    ``[num_dst]`` by those that end at a destination.

    Edges of the block count, parallel ones each; where there is none the factor is 1. Counts are
    exact below 2^24 edges of a node. A GPU is not waited for.
    """
    one = torch.ones(1, device=block.indices.device)
    begun = one.new_zeros(block.num_src)
    begun.index_add_(0, block.indices, one.expand(block.num_edges))
    ended = block.indptr.diff().to(one.dtype)
    return begun.clamp_(min=1).rsqrt_(), ended.clamp_(min=1).rsqrt_()


def symmetric_weights(block: Block) -> Tensor:
    """Weight 1 / sqrt(d_u d_v) of each edge (u, v): float32 ``[num_edges]``, kept by the block.

    d_u counts the block's edges that begin at u, d_v those that end at v, as DGL's ``GraphConv``
    with ``norm="both"`` counts them on a block.

    Two passes move 12 bytes an edge, the lower bound (the ids are read twice, the weight is
    written), and some more for the counts of sources. Equal bits on every device. Raises
    ``UsageError`` for a block that is broken.
    """
    if block.symmetric is None:
        with native_operators() as ops:
            block.symmetric = ops.symmetric_weights(block.indptr, block.indices, block.num_src)
    return block.symmetric
