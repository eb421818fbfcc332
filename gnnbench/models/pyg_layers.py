"""The layers as PyG message passing; apart, because importing it imports PyG."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from gnnbench.models.pyg_block import PygBlock
from gnnbench.models.weights import LayerWeights


class PygGCN(MessagePassing):
    """(sum of sampled + self) / (d + 1), then a linear map; the narrower rows are aggregated."""

    def __init__(self, weights: LayerWeights) -> None:
        super().__init__(aggr="sum")
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        if self._narrows:
            x = x @ self.weight.t()
        own = x[: block.num_dst]
        summed = self.propagate(block.edge_index, x=(x, own), size=(block.num_src, block.num_dst))
        h = (summed + own) / (block.degree + 1).unsqueeze(1)
        return h + self.bias if self._narrows else torch.addmm(self.bias, h, self.weight.t())


class PygGraphSAGE(MessagePassing):
    """W_self h_v + W_neighbour mean(sampled) + bias; the narrower rows are aggregated."""

    def __init__(self, weights: LayerWeights) -> None:
        super().__init__(aggr="mean")
        assert weights.self_ is not None
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.weight_self = nn.Parameter(weights.self_.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        own = torch.addmm(self.bias, x[: block.num_dst], self.weight_self.t())
        if self._narrows:
            x = x @ self.weight.t()
        h = self.propagate(
            block.edge_index, x=(x, x[: block.num_dst]), size=(block.num_src, block.num_dst)
        )
        return own + h if self._narrows else torch.addmm(own, h, self.weight.t())
