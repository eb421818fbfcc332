"""Forward pass of the models in float64, one destination at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.minibatch import Block
from gnnbench.models.weights import LayerWeights


def layer(model: str, weights: LayerWeights, block: Block, x: Tensor) -> Tensor:
    """Rows of the block's destinations ``[num_dst, out]``, float64."""
    w, bias = weights.neighbour.double(), weights.bias.double()
    rows = []
    for v in range(block.num_dst):
        picked = x[block.indices[block.indptr[v] : block.indptr[v + 1]].long()]
        if model == "gcn":
            rows.append(w @ ((picked.sum(0) + x[v]) / (picked.shape[0] + 1)) + bias)
        elif model == "graphsage":
            assert weights.self_ is not None
            mean = picked.mean(0) if picked.shape[0] else torch.zeros_like(x[v])
            rows.append(weights.self_.double() @ x[v] + w @ mean + bias)
        else:
            raise ValueError(f"no reference for model '{model}'")
    out = weights.bias.numel()
    return torch.stack(rows) if rows else torch.zeros((0, out), dtype=torch.float64)


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
