"""DGL's own layers; making the framework imports DGL, importing this module does not."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gnnbench.errors import UnsupportedError
from gnnbench.foreign.dgl_import import require_dgl
from gnnbench.minibatch import Block
from gnnbench.models.framework import Aggregation, Framework
from gnnbench.models.kinds import GCN, GRAPHSAGE, LayerKind, Mode
from gnnbench.models.weights import LayerWeights

# DGL's ``SAGEConv`` with the ``gcn`` aggregator has our definition of GCN.
AGGREGATORS = {GCN: "gcn", GRAPHSAGE: "mean"}


class DglFramework(Framework):
    """``SAGEConv`` on DGL's blocks. Raises ``MissingError`` where DGL is not installed."""

    name: ClassVar[str] = "dgl"

    def __init__(self) -> None:
        self._dgl = require_dgl()

    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """``SAGEConv`` with the kind's aggregator."""
        from dgl.nn.pytorch import SAGEConv

        if kind not in AGGREGATORS:
            raise UnsupportedError(
                f"DGL's layers here have no '{kind.name}'; they have:"
                f" {', '.join(k.name for k in AGGREGATORS)}"
            )
        out, into = weights.neighbour.shape
        layer: Any = SAGEConv(into, out, AGGREGATORS[kind])
        with torch.no_grad():
            layer.fc_neigh.weight.copy_(weights.neighbour)
            if weights.self_ is None:
                layer.bias.copy_(weights.bias)
            else:
                layer.fc_self.weight.copy_(weights.self_)
                layer.fc_self.bias.copy_(weights.bias)
        module: nn.Module = layer
        return module

    def blocks(self, batch: Any) -> list[Any]:
        """``batch.dgl_blocks`` of a batch that DGL drew; ours converted, where they are."""
        if hasattr(batch, "dgl_blocks"):
            return list(batch.dgl_blocks)
        return [self._convert(block) for block in batch.blocks]

    def _convert(self, block: Block) -> Any:
        no_ids = block.indptr.new_empty(0)
        return self._dgl.create_block(
            ("csc", (block.indptr, block.indices, no_ids)),
            num_src_nodes=block.num_src,
            num_dst_nodes=block.num_dst,
        )

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation | None:
        """``update_all`` as ``SAGEConv`` calls it; of ``gcn`` with its own row and division."""
        if weighted:
            return None
        fn = self._dgl.function
        reduce = fn.mean if mode == "mean" else fn.sum

        def run(block: Any, x: Tensor, weights: Tensor | None) -> Tensor:
            with block.local_scope():
                block.srcdata["h"] = x
                block.update_all(fn.copy_u("h", "m"), reduce("m", "neigh"))
                out: Tensor = block.dstdata["neigh"]
                if mode == "gcn":
                    own = x[: block.num_dst_nodes()]
                    out = (out + own) / (block.in_degrees().to(x) + 1).unsqueeze(-1)
            return out

        return run
