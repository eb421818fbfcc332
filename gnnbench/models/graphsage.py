"""GraphSAGE layer on a block: W_self h_v + W_neighbour mean(sampled) + bias.

As in ``gcn.py`` the linear map on the neighbours goes first where it narrows the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gnnbench.models.weights import LayerWeights
from gnnbench.ops.aggregate import aggregate

WITH_SELF = True


class NativeGraphSAGE(nn.Module):
    """The layer on our operators."""

    def __init__(self, weights: LayerWeights) -> None:
        super().__init__()
        assert weights.self_ is not None
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.weight_self = nn.Parameter(weights.self_.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]

    def forward(self, block: Any, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        own = torch.addmm(self.bias, x[: block.num_dst], self.weight_self.t())
        if self._narrows:
            return own + aggregate(block, x @ self.weight.t(), "mean")
        return torch.addmm(own, aggregate(block, x, "mean"), self.weight.t())


def native(weights: LayerWeights) -> nn.Module:
    """Layer for our blocks."""
    return NativeGraphSAGE(weights)


def dgl(weights: LayerWeights) -> nn.Module:
    """DGL's own ``SAGEConv`` with the ``mean`` aggregator."""
    from dgl.nn.pytorch import SAGEConv

    assert weights.self_ is not None
    out, into = weights.neighbour.shape
    layer: Any = SAGEConv(into, out, "mean")
    with torch.no_grad():
        layer.fc_neigh.weight.copy_(weights.neighbour)
        layer.fc_self.weight.copy_(weights.self_)
        layer.fc_self.bias.copy_(weights.bias)
    module: nn.Module = layer
    return module


def pyg(weights: LayerWeights) -> nn.Module:
    """PyG's message passing with this definition."""
    from gnnbench.models.pyg_layers import PygGraphSAGE

    return PygGraphSAGE(weights)
