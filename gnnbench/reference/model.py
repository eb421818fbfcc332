"""Forward pass of the models in float64, as their formulas stand; autograd gives the backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.minibatch import Block
from gnnbench.models.weights import LayerWeights


def neighbour_sums(block: Block, x: Tensor) -> Tensor:
    """Sum of each destination's picked rows ``[num_dst, dim]``; parallel edges count each."""
    ends = torch.repeat_interleave(torch.arange(block.num_dst), block.indptr.diff().long())
    sums = x.new_zeros(block.num_dst, x.shape[1])
    return sums.index_add(0, ends, x[block.indices.long()])


def layer(model: str, weights: LayerWeights, block: Block, x: Tensor) -> Tensor:
    """Rows of the block's destinations ``[num_dst, out]``, float64, from float64 rows ``x``."""
    w, bias = weights.neighbour.double(), weights.bias.double()
    degree = block.indptr.diff().double().unsqueeze(1)
    own, sums = x[: block.num_dst], neighbour_sums(block, x)
    if model == "gcn":
        return (sums + own) / (degree + 1) @ w.t() + bias
    if model == "graphsage":
        assert weights.self_ is not None
        return own @ weights.self_.double().t() + sums / degree.clamp_min(1) @ w.t() + bias
    raise ValueError(f"no reference for model '{model}'")


def forward(
    model: str, weights: Sequence[LayerWeights], blocks: Sequence[Block], x: Tensor
) -> Tensor:
    """Rows of the seeds ``[num_seeds, classes]``, float64; ReLU between layers."""
    h = x.double()
    for number, (w, block) in enumerate(zip(weights, blocks, strict=True)):
        h = layer(model, w, block, h)
        if number + 1 < len(blocks):
            h = h.relu()
    return h
