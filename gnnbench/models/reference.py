"""Forward pass of the models in float64, straight from their formulas; autograd differentiates it.

The same code computes with :class:`gnnbench.models.error_bounds.Bounded` values, which carry bounds
of float32 errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.models.kinds import MODELS, SLOPE
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LayerWeights,
    LinearWeights,
    MlpWeights,
)

if TYPE_CHECKING:
    from gnnbench.models.error_bounds import Bounded

Values = TypeVar("Values", Tensor, "Bounded")  # float64, without and with error bounds
TINY = 1e-12  # a row of a smaller norm is divided by this: one of zeros stays so


def edge_ends(block: Block) -> Tensor:
    """Local id of each edge's destination, int64 ``[num_edges]``."""
    return torch.repeat_interleave(torch.arange(block.num_dst), block.indptr.diff().long())


def edge_sums(block: Block, rows: Values) -> Values:
    """Sum of each destination's ``rows`` ``[num_edges, ...]``; parallel edges count each."""
    sums = rows.new_zeros(block.num_dst, *rows.shape[1:])
    return sums.index_add(0, edge_ends(block), rows)


def neighbour_sums(block: Block, x: Values) -> Values:
    """Sum of each destination's picked rows ``[num_dst, dim]``."""
    return edge_sums(block, x[block.indices.long()])


def gcn(w: LinearWeights, block: Block, x: Values) -> Values:
    """W (sum of sampled + own) / (d + 1) + bias."""
    degree = block.indptr.diff().double().unsqueeze(1)
    sums = neighbour_sums(block, x) + x[: block.num_dst]
    return sums / (degree + 1) @ w.neighbour.t() + w.bias


def graphsage(w: LinearWeights, block: Block, x: Values) -> Values:
    """W_self own + W_neighbour mean of sampled + bias."""
    assert w.self_ is not None
    degree = block.indptr.diff().double().unsqueeze(1)
    means = neighbour_sums(block, x) / degree.clamp_min(1)
    return means @ w.neighbour.t() + x[: block.num_dst] @ w.self_.t() + w.bias


def gcn_symmetric(w: LinearWeights, block: Block, x: Values) -> Values:
    """W sum of sampled / sqrt(d_u d_v) + bias; no edge has a degree of 0."""
    sources = block.indices.long()
    begun = torch.bincount(sources, minlength=block.num_src).double().unsqueeze(1)
    ended = block.indptr.diff().double().unsqueeze(1)
    sums = edge_sums(block, x[sources] / begun.sqrt()[sources])
    return sums / ended.clamp_min(1).sqrt() @ w.neighbour.t() + w.bias


def gin(w: MlpWeights, block: Block, x: Values) -> Values:
    """An MLP of own + sum of sampled."""
    sums = neighbour_sums(block, x) + x[: block.num_dst]
    return (sums @ w.first.t() + w.first_bias).relu() @ w.second.t() + w.second_bias


def gat(w: AttentionWeights, block: Block, x: Values) -> Values:
    """Sums weighted by the softmax of the edges' scores, head by head."""
    sources, ends = block.indices.long(), edge_ends(block)
    z = (x @ w.neighbour.t()).reshape(-1, *w.source.shape)
    of_source, of_destination = (z * w.source).sum(2), (z * w.destination).sum(2)
    scores = of_destination[ends] + of_source[sources]
    scores = scores * SLOPE + scores.relu() * (1 - SLOPE)  # LeakyReLU, of slope SLOPE at 0 too
    shares = (scores - _largest(block, scores.detach())[ends]).exp()
    shares = shares / edge_sums(block, shares)[ends]
    sums = edge_sums(block, z[sources] * shares.unsqueeze(2))
    return sums.reshape(block.num_dst, w.bias.numel()) + w.bias


def _largest(block: Block, scores: Tensor) -> Tensor:
    """Of each destination's scores ``[num_edges, heads]``; 0 where there are none."""
    at = edge_ends(block).unsqueeze(1).expand_as(scores)
    none = scores.new_zeros(block.num_dst, scores.shape[1])
    return none.scatter_reduce(0, at, scores, "amax", include_self=False)


def pinsage(w: ConvolveWeights, block: Block, x: Values) -> Values:
    """W (own, mean of ReLU(Q sampled + q) weighted by visits) + bias."""
    ones = torch.ones(block.num_edges)
    visits = (ones if block.weights is None else block.weights).double().unsqueeze(1)
    inner = (x @ w.inner.t() + w.inner_bias).relu()
    sums = edge_sums(block, inner[block.indices.long()] * visits)
    total = edge_sums(block, visits)
    means = sums / total.where(total > 0, 1.0)
    of_own, of_means = w.joined.split([x.shape[1], inner.shape[1]], 1)
    return means @ of_means.t() + x[: block.num_dst] @ of_own.t() + w.joined_bias


def layer(model: str, weights: LayerWeights, block: Block, x: Values) -> Values:
    """Rows of the block's destinations ``[num_dst, out]``, float64, from float64 rows ``x``."""
    match weights.mapped(Tensor.double):
        case LinearWeights() as linear:
            formula = {"gcn": gcn, "graphsage": graphsage, "gcn-symmetric": gcn_symmetric}[model]
            return formula(linear, block, x)
        case MlpWeights() as mlp:
            return gin(mlp, block, x)
        case AttentionWeights() as attention:
            return gat(attention, block, x)
        case ConvolveWeights() as convolve:
            return pinsage(convolve, block, x)
    raise TypeError(f"model '{model}' has no formula for {type(weights).__name__}")


def activation(model: str, x: Values) -> Values:
    """The function between two layers: ReLU, then unit rows where the model has them."""
    x = x.relu()
    if MODELS[model].unit_rows:
        x = x / x.norm(dim=1, keepdim=True).clamp_min(TINY)
    return x


def forward(
    model: str, weights: Sequence[LayerWeights], blocks: Sequence[Block], x: Values
) -> Values:
    """Rows of the seeds ``[num_seeds, classes]``, float64."""
    h = x.double()
    for number, (w, block) in enumerate(zip(weights, blocks, strict=True)):
        h = layer(model, w, block, h)
        if number + 1 < len(blocks):
            h = activation(model, h)
    return h
