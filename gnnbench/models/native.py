"""The layers of our own, over an aggregation that is handed in."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from gnnbench.minibatch import Block
from gnnbench.models.framework import Aggregation, Framework
from gnnbench.models.kinds import LayerKind, Mode
from gnnbench.models.weights import LayerWeights


class Aggregate(Protocol):
    """Sources of a block aggregated into its destinations; differentiable in ``x``."""

    def __call__(
        self, block: Block, x: Tensor, mode: Mode, edge_weight: Tensor | None = None
    ) -> Tensor:
        """``[num_dst, dim]`` from ``x`` ``[num_src, dim]``.

        ``edge_weight`` ``[num_edges]`` weights each edge, and d is then the sum of a destination's
        weights; without it every edge has weight 1. Raises ``UnsupportedError`` where the
        aggregation takes none.
        """


class NativeLayer(nn.Module):
    """Any kind of layer, by the aggregation's mode and the weights that there are."""

    def __init__(self, kind: LayerKind, weights: LayerWeights, aggregate: Aggregate) -> None:
        super().__init__()
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
        if self._narrows:
            return own + self._aggregate(block, x @ self.weight.t(), self._mode, edge_weight)
        return torch.addmm(own, self._aggregate(block, x, self._mode, edge_weight), self.weight.t())


class Native(Framework):
    """Our layers over one aggregation."""

    name: ClassVar[str] = "native"

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate

    def layer(self, kind: LayerKind, weights: LayerWeights) -> NativeLayer:
        """Every kind there is."""
        return NativeLayer(kind, weights, self._aggregate)

    def blocks(self, batch: Any) -> list[Block]:
        """As they are."""
        blocks: list[Block] = batch.blocks
        return blocks

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation:
        """The one that was handed in."""
        return lambda block, x, weights: self._aggregate(block, x, mode, weights)
