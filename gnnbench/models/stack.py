"""A model: layers applied block by block, with ReLU and optional row normalisation between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gnnbench.core import names
from gnnbench.kernels.dropout import Masks
from gnnbench.models.framework import BlockT, Framework
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import layer_dims, make_weights


class Stack(nn.Module):
    """``h = layer(block, h)`` for each block, input layer first; ReLU between two layers.

    ``unit_rows``: rows are then divided by their l2 norm (at least 1e-12). ``masks``: dropout of
    the rows between two layers, last, as in DGL's examples; None, as outside of training, drops
    nothing.
    """

    masks: Masks | None = None

    def __init__(self, layers: Sequence[nn.Module], unit_rows: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self._unit_rows = unit_rows

    def forward(self, blocks: Sequence[object], x: Tensor) -> Tensor:
        """Rows of the seeds ``[num_seeds, classes]`` from input rows ``[num_src, feature_dim]``."""
        for number, block in zip(range(len(self.layers)), blocks, strict=True):
            x = self.layer(number, block, x)
            if self.masks is not None and number + 1 < len(self.layers):
                x = self.masks(number, x)
        return x

    def layer(self, number: int, block: object, x: Tensor) -> Tensor:
        """Output rows ``[num_dst, out]`` of one layer, after ReLU unless it is the last."""
        layer = self.layers[number]
        if number == len(self.layers) - 1:
            return layer(block, x)
        # A layer may fuse its bias and ReLU.
        with_relu = getattr(layer, "forward_relu", None)
        x = torch.relu(layer(block, x)) if with_relu is None else with_relu(block, x)
        return nn.functional.normalize(x) if self._unit_rows else x


def build(
    model: str,
    framework: Framework[BlockT],
    feature_dim: int,
    hidden: int,
    classes: int,
    layers: int,
    seed: int,
) -> Stack:
    """Build ``model`` from the framework's layers, with weights drawn from ``seed``.

    Raises ``UsageError`` for an unknown model, and for heads that cannot share ``hidden``.
    """
    names.check("model", model, MODELS)
    kind = MODELS[model]
    weights = make_weights(layer_dims(feature_dim, hidden, classes, layers), kind, seed)
    return Stack([framework.layer(kind, w) for w in weights], kind.unit_rows)
