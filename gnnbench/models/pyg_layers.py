"""The layers as PyG message passing; apart, because importing it imports PyG."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from gnnbench.convert import edge_index
from gnnbench.models.framework import Aggregation, Framework
from gnnbench.models.kinds import LayerKind, Mode
from gnnbench.models.pyg_block import PygBlock
from gnnbench.models.weights import LayerWeights


class PygLayer(MessagePassing):
    """Any kind of layer; the narrower rows are aggregated."""

    def __init__(self, kind: LayerKind, weights: LayerWeights) -> None:
        super().__init__(aggr="mean" if kind.mode == "mean" else "sum")
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.weight_self = None if weights.self_ is None else nn.Parameter(weights.self_.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]
        self._mode = kind.mode

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        own: Tensor = self.bias
        if self.weight_self is not None:
            own = torch.addmm(self.bias, x[: block.num_dst], self.weight_self.t())
        if self._narrows:
            x = x @ self.weight.t()
        to = x[: block.num_dst]
        h = self.propagate(block.edge_index, x=(x, to), size=(block.num_src, block.num_dst))
        if self._mode == "gcn":
            h = (h + to) / (block.degree + 1).unsqueeze(1)
        return own + h if self._narrows else torch.addmm(own, h, self.weight.t())


class PygMessages(MessagePassing):
    """What a layer aggregates, without the rest of it."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(aggr="mean" if mode == "mean" else "sum")
        self._mode = mode

    def forward(self, block: PygBlock, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """Rows of the block's destinations."""
        to = x[: block.num_dst]
        h: Tensor = self.propagate(block.edge_index, x=(x, to), size=(block.num_src, block.num_dst))
        return (h + to) / (block.degree + 1).unsqueeze(1) if self._mode == "gcn" else h


class PygFramework(Framework):
    """Message passing on an ``edge_index`` by layer."""

    name: ClassVar[str] = "pyg"

    def layer(self, kind: LayerKind, weights: LayerWeights) -> PygLayer:
        """Every kind there is."""
        return PygLayer(kind, weights)

    def blocks(self, batch: Any) -> list[PygBlock]:
        """``batch.pyg_blocks`` of a batch that PyG's loader gave; ours converted."""
        if hasattr(batch, "pyg_blocks"):
            return list(batch.pyg_blocks)
        return [PygBlock(edge_index(b), b.num_src, b.num_dst) for b in batch.blocks]

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation | None:
        """``propagate``, without weights."""
        return None if weighted else PygMessages(mode)
