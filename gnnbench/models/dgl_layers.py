"""DGL's own layers. Building the framework imports DGL, importing this module does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Batch, Block
from gnnbench.kernels.dgl_import import require_dgl
from gnnbench.models.framework import Aggregation, Attention, Framework, dense, set_to
from gnnbench.models.kinds import GCN, GRAPHSAGE, SLOPE, LayerKind, Mode
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LayerWeights,
    LinearWeights,
    MlpWeights,
)

if TYPE_CHECKING:
    from gnnbench.kernels.dgl_types import DglBlock

# DGL's ``SAGEConv`` with the ``gcn`` aggregator has our definition of GCN.
AGGREGATORS = {GCN: "gcn", GRAPHSAGE: "mean"}
WEIGHTS = "weights"  # of a block's edges, as ``gnnbench.to_dgl`` names them


def sage(kind: LayerKind, weights: LinearWeights) -> nn.Module:
    """``SAGEConv`` with the kind's aggregator."""
    from dgl.nn.pytorch import SAGEConv

    if kind not in AGGREGATORS:
        raise UnsupportedError(
            f"DGL's layers here have no '{kind.name}'; they have:"
            f" {', '.join(k.name for k in AGGREGATORS)}"
        )
    out, into = weights.neighbour.shape
    layer = SAGEConv(into, out, AGGREGATORS[kind])
    set_to(layer.fc_neigh.weight, weights.neighbour)
    if weights.self_ is None:
        set_to(layer.bias, weights.bias)
    else:
        set_to(layer.fc_self.weight, weights.self_)
        set_to(layer.fc_self.bias, weights.bias)
    return layer


def gin(kind: LayerKind, weights: MlpWeights) -> nn.Module:
    """``GINConv``, its epsilon 0."""
    from dgl.nn.pytorch import GINConv

    first = dense(weights.first, weights.first_bias)
    second = dense(weights.second, weights.second_bias)
    return GINConv(nn.Sequential(first, nn.ReLU(), second), "sum")


class DglSymmetric(nn.Module):
    """``GraphConv`` with ``norm="both"``, which takes its W transposed, and from outside, too."""

    def __init__(self, weights: LinearWeights) -> None:
        from dgl.nn.pytorch import GraphConv

        super().__init__()
        out, into = weights.neighbour.shape
        self.weight = nn.Parameter(weights.neighbour.clone())
        self.conv = GraphConv(into, out, norm="both", weight=False, allow_zero_in_degree=True)
        set_to(self.conv.bias, weights.bias)

    def forward(self, block: DglBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        return self.conv(block, x, weight=self.weight.t())


class DglAttention(nn.Module):
    """``GATConv`` with concatenated heads; destinations may have no neighbours."""

    def __init__(self, kind: LayerKind, weights: AttentionWeights) -> None:
        from dgl.nn.pytorch import GATConv

        super().__init__()
        heads, width = weights.source.shape
        self.conv = GATConv(
            weights.neighbour.shape[1], width, heads, negative_slope=SLOPE,
            allow_zero_in_degree=True,
        )  # fmt: skip
        set_to(self.conv.fc.weight, weights.neighbour)
        set_to(self.conv.attn_l, weights.source)
        set_to(self.conv.attn_r, weights.destination)
        set_to(self.conv.bias, weights.bias)
        self.conv.fc.register_forward_hook(_in_one_dtype)

    def forward(self, block: DglBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations."""
        return self.conv(block, x).flatten(1)


def _in_one_dtype(module: nn.Module, args: object, z: Tensor) -> Tensor:
    """On a CPU, DGL does not cast products in bfloat16 and scores in float32 to one dtype."""
    return z.float() if z.dtype == torch.bfloat16 and not z.is_cuda else z


class DglConvolve(nn.Module):
    """PinSAGE by DGL's message passing, as its example's ``WeightedSAGEConv``."""

    def __init__(self, kind: LayerKind, weights: ConvolveWeights) -> None:
        super().__init__()
        self.inner = dense(weights.inner, weights.inner_bias)
        self.joined = dense(weights.joined, weights.joined_bias)

    def forward(self, block: DglBlock, x: Tensor) -> Tensor:
        """Rows of the block's destinations; weighted by visits where the block has them."""
        from dgl import function as fn

        with block.local_scope():
            inner = self.inner(x).relu()
            block.srcdata["n"] = inner
            if WEIGHTS in block.edata:
                block.edata["w"] = block.edata[WEIGHTS].to(inner.dtype)
                block.update_all(fn.u_mul_e("n", "w", "m"), fn.sum("m", "n"))
                block.update_all(fn.copy_e("w", "m"), fn.sum("m", "total"))
                total = block.dstdata["total"]
                means = block.dstdata["n"] / total.where(total > 0, 1.0).unsqueeze(1)
            else:
                block.update_all(fn.copy_u("n", "m"), fn.mean("m", "n"))
                means = block.dstdata["n"]
        return self.joined(torch.cat([x[: means.shape[0]], means], 1))


class DglFramework(Framework["DglBlock"]):
    """DGL's layers on DGL's blocks. Raises ``MissingError`` where DGL is not installed."""

    name: ClassVar[str] = "dgl"

    def __init__(self) -> None:
        self._dgl = require_dgl()

    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """``SAGEConv``, ``GraphConv``, ``GINConv``, ``GATConv``; PinSAGE by message passing."""
        match weights:
            case LinearWeights() if kind.symmetric:
                return DglSymmetric(weights)
            case LinearWeights():
                return sage(kind, weights)
            case MlpWeights():
                return gin(kind, weights)
            case AttentionWeights():
                return DglAttention(kind, weights)
            case ConvolveWeights():
                return DglConvolve(kind, weights)
        raise TypeError(f"no layer of DGL has {type(weights).__name__}")

    def blocks(self, batch: Batch) -> list[DglBlock]:
        """``batch.dgl_blocks`` of a batch that DGL sampled; other blocks are converted."""
        own: list[DglBlock] | None = getattr(batch, "dgl_blocks", None)
        if own is not None:
            return list(own)
        return [self._convert(block) for block in batch.blocks]

    def _convert(self, block: Block) -> DglBlock:
        # DGL's CPU kernels over edge values fail without explicit edge ids.
        ids = torch.arange(block.num_edges, dtype=block.indptr.dtype, device=block.indptr.device)
        dgl_block: DglBlock = self._dgl.create_block(
            ("csc", (block.indptr, block.indices, ids)),
            num_src_nodes=block.num_src,
            num_dst_nodes=block.num_dst,
        )
        if block.weights is not None:
            dgl_block.edata[WEIGHTS] = block.weights
        return dgl_block

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation[DglBlock] | None:
        """``update_all`` as in ``SAGEConv``; for ``gcn`` with the own row and the division.

        Weighted sums as in ``GraphConv`` with weights; only sums have weights.
        """
        if weighted and mode != "sum":
            return None
        fn = self._dgl.function
        reduce = fn.mean if mode == "mean" else fn.sum

        def run(block: DglBlock, x: Tensor, weights: Tensor | None) -> Tensor:
            with block.local_scope():
                block.srcdata["h"] = x
                if weights is None:
                    block.update_all(fn.copy_u("h", "m"), reduce("m", "neigh"))
                else:
                    block.edata["w"] = weights
                    block.update_all(fn.u_mul_e("h", "w", "m"), reduce("m", "neigh"))
                out: Tensor = block.dstdata["neigh"]
                if mode == "gcn":
                    own = x[: block.num_dst_nodes()]
                    out = (out + own) / (block.in_degrees().to(x) + 1).unsqueeze(-1)
            return out

        return run

    def attention(self) -> Attention[DglBlock]:
        """The computation of ``GATConv`` on scores and rows."""
        fn, softmax = self._dgl.function, self._dgl.nn.functional.edge_softmax

        def run(
            block: DglBlock, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
        ) -> Tensor:
            with block.local_scope():
                block.srcdata.update({"z": z, "el": of_source.unsqueeze(-1)})
                block.dstdata.update({"er": of_destination.unsqueeze(-1)})
                block.apply_edges(fn.u_add_v("el", "er", "e"))
                scores = nn.functional.leaky_relu(block.edata.pop("e"), slope)
                block.edata["a"] = softmax(block, scores)
                block.update_all(fn.u_mul_e("z", "a", "m"), fn.sum("m", "out"))
                out: Tensor = block.dstdata["out"]
            return out

        return run
