"""Native layers, parametrised by an aggregation and an attention."""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Batch, Block
from gnnbench.kernels.bias_relu import bias_relu
from gnnbench.kernels.symmetric import symmetric_factors, symmetric_weights
from gnnbench.models.framework import Aggregation, Attention, Framework
from gnnbench.models.kinds import SLOPE, LayerKind, Mode
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LayerWeights,
    LinearWeights,
    MlpWeights,
)


class Aggregate(Protocol):
    """Sources of a block aggregated into its destinations; differentiable in ``x``."""

    def __call__(
        self, block: Block, x: Tensor, mode: Mode, edge_weight: Tensor | None = None
    ) -> Tensor:
        """``[num_dst, dim]`` from ``x`` ``[num_src, dim]``, bfloat16 where products are.

        ``edge_weight`` ``[num_edges]`` weights each edge, and d is then the sum of a destination's
        weights; without it every edge has weight 1. Raises ``UnsupportedError`` where the
        aggregation takes none.
        """


class Attend(Protocol):
    """Sources of a block weighted by attention; differentiable in all three tensors."""

    def __call__(
        self, block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
    ) -> Tensor:
        """``[num_dst, heads, width]``: for each head the sum of alpha_uv ``z[u]``.

        alpha_uv is the softmax over v's edges of LeakyReLU, of ``slope`` at 0 and below, of
        ``of_source[u] + of_destination[v]``; 0 for a destination without edges. ``z``
        ``[num_src, heads, width]``; scores ``[num_src, heads]`` and ``[num_dst, heads]``.
        """


class NativeLayer(nn.Module):
    """GCN or GraphSAGE, by the mode of the aggregation and by the weights.

    W is applied before the aggregation where it narrows the rows. With ``fewest_bytes`` it is
    applied afterwards where that moves fewer rows (:func:`moves_less_aggregated_first`), and a bias
    and its ReLU are one operator (:func:`gnnbench.kernels.bias_relu.bias_relu`). ``weighs``: the
    aggregation takes edge weights; otherwise rows are scaled by the factors of both ends.
    """

    def __init__(
        self,
        kind: LayerKind,
        weights: LinearWeights,
        aggregate: Aggregate,
        fewest_bytes: bool = False,
        weighs: bool = True,
    ) -> None:
        super().__init__()
        self._fewest_bytes, self._symmetric, self._weighs = fewest_bytes, kind.symmetric, weighs
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.weight_self = None if weights.self_ is None else nn.Parameter(weights.self_.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]
        self._mode = kind.mode
        self._aggregate = aggregate

    def forward(self, block: Block, x: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Rows of the block's destinations; ``edge_weight`` as in :class:`Aggregate`."""
        own: Tensor = self.bias
        if self.weight_self is not None:
            own = torch.addmm(self.bias, x[: block.num_dst], self.weight_self.t())
        return self._with_neighbours(own, block, x, edge_weight)

    def forward_relu(self, block: Block, x: Tensor) -> Tensor:
        """The larger of those rows and 0."""
        if not self._fewest_bytes:
            return torch.relu(self(block, x))
        own = None
        if self.weight_self is not None:
            own = x[: block.num_dst] @ self.weight_self.t()
        return bias_relu(self._with_neighbours(own, block, x, None), self.bias)

    def _with_neighbours(
        self, own: Tensor | None, block: Block, x: Tensor, edge_weight: Tensor | None
    ) -> Tensor:
        """The neighbours' contribution plus ``own`` (None: nothing)."""
        if self._narrows and not self._aggregates_first(block, x):
            rows = self._aggregated(block, x @ self.weight.t(), edge_weight)
            return rows if own is None else own.to(rows.dtype) + rows
        sums = self._aggregated(block, x, edge_weight)
        return sums @ self.weight.t() if own is None else torch.addmm(own, sums, self.weight.t())

    def _aggregated(self, block: Block, x: Tensor, edge_weight: Tensor | None) -> Tensor:
        if not self._symmetric:
            return self._aggregate(block, x, self._mode, edge_weight)
        if self._weighs:
            return self._aggregate(block, x, self._mode, symmetric_weights(block))
        source, destination = symmetric_factors(block)
        sums = self._aggregate(block, x * source.unsqueeze(1), self._mode)
        return sums * destination.unsqueeze(1)

    def _aggregates_first(self, block: Block, x: Tensor) -> bool:
        if not self._fewest_bytes or x.requires_grad or not torch.is_grad_enabled():
            return False
        out, width = self.weight.shape
        return moves_less_aggregated_first(block, out, width)


def moves_less_aggregated_first(block: Block, out: int, width: int) -> bool:
    """Whether a training step moves fewer rows with W, ``[out, width]``, after the aggregation.

    The aggregation then has no backward, and W meets destinations only. Elements, forward and
    backward, of rows that need no gradient::

        W first            x read twice by W, its product written, read by edge, and so its gradient
        aggregated first   x read by edge, the sums written, and read twice by W
    """
    edges, src, dst = block.indices.numel(), block.num_src, block.num_dst
    return (edges + 3 * dst) * width < 2 * src * width + (2 * edges + 4 * src) * out


class NativeMlp(nn.Module):
    """GIN."""

    def __init__(self, kind: LayerKind, weights: MlpWeights, aggregate: Aggregate) -> None:
        super().__init__()
        self.weight = nn.Parameter(weights.first.clone())
        self.bias = nn.Parameter(weights.first_bias.clone())
        self.second_weight = nn.Parameter(weights.second.clone())
        self.second_bias = nn.Parameter(weights.second_bias.clone())
        self._mode = kind.mode
        self._aggregate = aggregate

    def forward(self, block: Block, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        sums = self._aggregate(block, x, self._mode) + x[: block.num_dst]
        inner = torch.addmm(self.bias, sums, self.weight.t()).relu()
        return torch.addmm(self.second_bias, inner, self.second_weight.t())


class NativeAttention(nn.Module):
    """GAT."""

    def __init__(self, weights: AttentionWeights, attend: Attend) -> None:
        super().__init__()
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.source = nn.Parameter(weights.source.clone())
        self.destination = nn.Parameter(weights.destination.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        heads = self.source.shape[0]
        self._own_head: Tensor
        own_head = torch.eye(heads).view(heads, 1, 1, heads)
        self.register_buffer("_own_head", own_head, persistent=False)
        self._attend = attend

    def forward(self, block: Block, x: Tensor) -> Tensor:
        """Rows of the block's destinations, with concatenated heads."""
        z = x @ self.weight.t()
        heads, width = self.source.shape
        # One product for both scores of all heads: the matrix is 0 outside the own head.
        vectors = torch.stack([self.source, self.destination], 2).unsqueeze(3)
        scores = z @ (vectors * self._own_head).view(heads * width, 2 * heads)
        of_source, of_destination = scores[:, :heads], scores[: block.num_dst, heads:]
        rows = self._attend(block, z.view(-1, heads, width), of_source, of_destination, SLOPE)
        return rows.flatten(1) + self.bias.to(rows.dtype)


class NativeConvolve(nn.Module):
    """PinSAGE."""

    def __init__(self, kind: LayerKind, weights: ConvolveWeights, aggregate: Aggregate) -> None:
        super().__init__()
        self.inner_weight = nn.Parameter(weights.inner.clone())
        self.inner_bias = nn.Parameter(weights.inner_bias.clone())
        self.weight = nn.Parameter(weights.joined.clone())
        self.bias = nn.Parameter(weights.joined_bias.clone())
        self._mode = kind.mode
        self._aggregate = aggregate

    def forward(self, block: Block, x: Tensor) -> Tensor:
        """Rows of the block's destinations; weighted by visits where the block has them."""
        inner = torch.addmm(self.inner_bias, x, self.inner_weight.t()).relu()
        means = self._aggregate(block, inner, self._mode, block.weights)
        # Equal to a product with concatenated rows, which would be a copy as wide as the input.
        of_own, of_means = self.weight.split([x.shape[1], inner.shape[1]], 1)
        own = torch.addmm(self.bias, x[: block.num_dst], of_own.t())
        return torch.addmm(own, means, of_means.t())


class Native(Framework[Block]):
    """Native layers over one aggregation and, where there is one, its attention.

    ``weighs``: the aggregation takes edge weights.
    """

    name: ClassVar[str] = "native"

    def __init__(
        self,
        aggregate: Aggregate,
        attend: Attend | None = None,
        fewest_bytes: bool = False,
        weighs: bool = True,
    ) -> None:
        self._aggregate, self._attend = aggregate, attend
        self._fewest_bytes, self._weighs = fewest_bytes, weighs

    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """Any kind of layer; attention only where an attention was given."""
        match weights:
            case LinearWeights():
                return NativeLayer(kind, weights, self._aggregate, self._fewest_bytes, self._weighs)
            case MlpWeights():
                return NativeMlp(kind, weights, self._aggregate)
            case AttentionWeights():
                return NativeAttention(weights, self._require_attend(kind))
            case ConvolveWeights():
                return NativeConvolve(kind, weights, self._aggregate)
        raise TypeError(f"no native layer has {type(weights).__name__}")

    def _require_attend(self, kind: LayerKind) -> Attend:
        if self._attend is None:
            raise UnsupportedError(
                f"'{kind.name}' needs an aggregation that weighs edges by attention; use"
                " aggregate=csr or scatter"
            )
        return self._attend

    def blocks(self, batch: Batch) -> list[Block]:
        """The batch's blocks, unchanged."""
        return batch.blocks

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation[Block] | None:
        """The aggregation given to the constructor."""
        if weighted and not self._weighs:
            return None
        return lambda block, x, weights: self._aggregate(block, x, mode, weights)

    def attention(self) -> Attention[Block] | None:
        """The attention given to the constructor, or None."""
        return self._attend
