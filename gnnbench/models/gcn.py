"""GCN layer on a block: (sum of sampled + self) / (d + 1), then a linear map.

The linear map goes first where it narrows the rows, in every framework: it commutes with the
aggregation and leaves fewer bytes to aggregate (DGL's layers decide the same way).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gnnbench.models.weights import LayerWeights
from gnnbench.ops.aggregate import aggregate

WITH_SELF = False


class NativeGCN(nn.Module):
    """The layer on our operators."""

    def __init__(self, weights: LayerWeights) -> None:
        super().__init__()
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]

    def forward(self, block: Any, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        if self._narrows:
            return aggregate(block, x @ self.weight.t(), "gcn") + self.bias
        return torch.addmm(self.bias, aggregate(block, x, "gcn"), self.weight.t())


def native(weights: LayerWeights) -> nn.Module:
    """Layer for our blocks."""
    return NativeGCN(weights)


def dgl(weights: LayerWeights) -> nn.Module:
    """DGL's own layer: ``SAGEConv`` with the ``gcn`` aggregator has this definition."""
    from dgl.nn.pytorch import SAGEConv

    out, into = weights.neighbour.shape
    layer: Any = SAGEConv(into, out, "gcn")
    with torch.no_grad():
        layer.fc_neigh.weight.copy_(weights.neighbour)
        layer.bias.copy_(weights.bias)
    module: nn.Module = layer
    return module


def pyg(weights: LayerWeights) -> nn.Module:
    """PyG's message passing with this definition."""
    from gnnbench.models.pyg_layers import PygGCN

    return PygGCN(weights)
