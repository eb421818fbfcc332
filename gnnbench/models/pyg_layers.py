"""PyG's own layers and message passing. Importing this module imports PyG."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GINConv, MessagePassing
from torch_geometric.utils import softmax

from gnnbench.core.minibatch import Batch
from gnnbench.models.convert import edge_index
from gnnbench.models.framework import Aggregation, Attention, Framework, dense, set_to
from gnnbench.models.kinds import SLOPE, LayerKind, Mode
from gnnbench.models.pyg_block import PygBlock
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LayerWeights,
    LinearWeights,
    MlpWeights,
)


class PygLayer(MessagePassing):
    """Both kinds of GCN, and GraphSAGE; the narrower rows are aggregated."""

    def __init__(self, kind: LayerKind, weights: LinearWeights) -> None:
        super().__init__(aggr="mean" if kind.mode == "mean" else "sum")
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.weight_self = None if weights.self_ is None else nn.Parameter(weights.self_.clone())
        self.bias = nn.Parameter(weights.bias.clone())
        self._narrows = weights.neighbour.shape[0] < weights.neighbour.shape[1]
        self._mode, self._symmetric = kind.mode, kind.symmetric

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        own: Tensor = self.bias
        if self.weight_self is not None:
            own = torch.addmm(self.bias, x[: block.num_dst], self.weight_self.t())
        if self._narrows:
            x = x @ self.weight.t()
        to = x[: block.num_dst]
        size = (block.num_src, block.num_dst)
        norm = block.symmetric.to(x.dtype) if self._symmetric else None
        h = self.propagate(block.edge_index, x=(x, to), norm=norm, size=size)
        if self._mode == "gcn":
            h = (h + to) / (block.degree + 1).unsqueeze(1)
        return own + h if self._narrows else torch.addmm(own, h, self.weight.t())

    def message(self, x_j: Tensor, norm: Tensor | None) -> Tensor:
        """A neighbour's row, weighted as by ``GCNConv``, which has no bipartite blocks."""
        return x_j if norm is None else norm.view(-1, 1) * x_j


class PygOwnLayer(nn.Module):
    """A layer of PyG's that takes (rows of sources, rows of destinations) and their edges."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        size = (block.num_src, block.num_dst)
        return self.conv((x, x[: block.num_dst]), block.edge_index, size=size)


def gin(weights: MlpWeights) -> PygOwnLayer:
    """``GINConv``, its epsilon 0; it draws the weights of its MLP anew when it is made."""
    first = dense(weights.first, weights.first_bias)
    second = dense(weights.second, weights.second_bias)
    layer = PygOwnLayer(GINConv(nn.Sequential(first, nn.ReLU(), second)))
    for parameter, values in zip(layer.parameters(), weights.tensors(), strict=True):
        set_to(parameter, values)
    return layer


def gat(weights: AttentionWeights) -> PygOwnLayer:
    """``GATConv`` without self loops, its heads concatenated."""
    heads, width = weights.source.shape
    conv = GATConv(
        weights.neighbour.shape[1], width, heads, negative_slope=SLOPE, add_self_loops=False
    )
    set_to(conv.lin.weight, weights.neighbour)
    set_to(conv.att_src, weights.source)
    set_to(conv.att_dst, weights.destination)
    set_to(conv.bias, weights.bias)
    return PygOwnLayer(conv)


class PygConvolve(MessagePassing):
    """PinSAGE by PyG's message passing."""

    def __init__(self, weights: ConvolveWeights) -> None:
        super().__init__(aggr="sum")
        self.inner = dense(weights.inner, weights.inner_bias)
        self.joined = dense(weights.joined, weights.joined_bias)

    def forward(self, block: PygBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations; weighted by visits where the block has them."""
        inner = self.inner(x).relu()
        visits, total = None, block.degree
        if block.weights is not None:
            visits = block.weights.to(x.dtype).unsqueeze(1)
            total = visits.new_zeros(block.num_dst).index_add(
                0, block.edge_index[1], visits.squeeze(1)
            )
        size = (block.num_src, block.num_dst)
        sums = self.propagate(block.edge_index, x=(inner, None), visits=visits, size=size)
        means = sums / total.where(total > 0, 1.0).unsqueeze(1)
        return self.joined(torch.cat([x[: block.num_dst], means], 1))

    def message(self, x_j: Tensor, visits: Tensor | None) -> Tensor:
        """A neighbour's row as often as it was visited."""
        return x_j if visits is None else x_j * visits


class PygMessages(MessagePassing):
    """The aggregation of a layer alone."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(aggr="mean" if mode == "mean" else "sum")
        self._mode = mode

    def forward(self, block: PygBlock, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """Rows of the block's destinations."""
        to, size = x[: block.num_dst], (block.num_src, block.num_dst)
        h: Tensor = self.propagate(block.edge_index, x=(x, to), norm=weights, size=size)
        return (h + to) / (block.degree + 1).unsqueeze(1) if self._mode == "gcn" else h

    def message(self, x_j: Tensor, norm: Tensor | None) -> Tensor:
        """A neighbour's row by the weight of its edge."""
        return x_j if norm is None else norm.view(-1, 1) * x_j


class PygAttends(MessagePassing):
    """Sums weighted by attention, from given scores."""

    def __init__(self) -> None:
        super().__init__(aggr="sum", node_dim=0)

    def forward(
        self, block: PygBlock, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
    ) -> Tensor:
        """Rows of the block's destinations, head by head."""
        src, dst = block.edge_index
        scores = nn.functional.leaky_relu(of_source[src] + of_destination[dst], slope)
        alpha = softmax(scores, dst, num_nodes=block.num_dst).unsqueeze(-1)
        size = (block.num_src, block.num_dst)
        return self.propagate(block.edge_index, x=(z, None), alpha=alpha, size=size)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        """A neighbour's row by its weight."""
        return x_j * alpha


class PygFramework(Framework[PygBlock]):
    """PyG's layers on an ``edge_index`` by layer."""

    name: ClassVar[str] = "pyg"

    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """Any kind of layer."""
        match weights:
            case LinearWeights():
                return PygLayer(kind, weights)
            case MlpWeights():
                return gin(weights)
            case AttentionWeights():
                return gat(weights)
            case ConvolveWeights():
                return PygConvolve(weights)
        raise TypeError(f"no layer of PyG has {type(weights).__name__}")

    def blocks(self, batch: Batch) -> list[PygBlock]:
        """``batch.pyg_blocks`` of a batch that PyG sampled; other blocks are converted."""
        own: list[PygBlock] | None = getattr(batch, "pyg_blocks", None)
        if own is not None:
            return list(own)
        return [PygBlock(edge_index(b), b.num_src, b.num_dst, b.weights) for b in batch.blocks]

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation[PygBlock] | None:
        """``propagate``; only sums have weights."""
        return None if weighted and mode != "sum" else PygMessages(mode)

    def attention(self) -> Attention[PygBlock]:
        """The computation of ``GATConv`` on scores and rows."""
        return PygAttends()
