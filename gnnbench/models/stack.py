"""A model: layers applied block by block, with ReLU and optional row normalisation between them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from gnnbench.core import names
from gnnbench.core.precision import BFLOAT16, FLOAT32
from gnnbench.kernels.dropout import Masks
from gnnbench.models.framework import BlockT, Framework
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import layer_dims, make_weights


class Stack(nn.Module):
    """``h = layer(block, h)`` for each block, input layer first; ReLU between two layers.

    ``unit_rows``: rows are then divided by their l2 norm (at least 1e-12). ``masks``: dropout of
    the rows between two layers, last, as in DGL's examples; None, as outside of training, drops
    nothing. ``precision`` bfloat16: layers run under ``torch.autocast``; parameters, their
    gradients and the rows of the seeds stay float32.
    """

    masks: Masks | None = None

    def __init__(
        self, layers: Sequence[nn.Module], unit_rows: bool = False, precision: str = FLOAT32
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self._unit_rows = unit_rows
        self._is_narrow = precision == BFLOAT16

    def forward(self, blocks: Sequence[object], x: Tensor) -> Tensor:
        """Rows of the seeds ``[num_seeds, classes]`` from input rows ``[num_src, feature_dim]``."""
        with self._precision(x):
            for number, block in zip(range(len(self.layers)), blocks, strict=True):
                x = self._layer(number, block, x)
                if self.masks is not None and number + 1 < len(self.layers):
                    x = self.masks(number, x)
        return x.float() if self._is_narrow else x

    def layer(self, number: int, block: object, x: Tensor) -> Tensor:
        """Output rows ``[num_dst, out]`` of one layer, after ReLU unless it is the last."""
        with self._precision(x):
            return self._layer(number, block, x)

    def _precision(self, x: Tensor) -> AbstractContextManager[object]:
        # Each weight is cast once a step, so there is nothing to cache, and a CUDA graph must not.
        if not self._is_narrow:
            return nullcontext()
        return torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False)

    def _layer(self, number: int, block: object, x: Tensor) -> Tensor:
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
    precision: str = FLOAT32,
) -> Stack:
    """Build ``model`` from the framework's layers, with weights drawn from ``seed``.

    Raises ``UsageError`` for an unknown model, and for heads that cannot share ``hidden``.
    """
    names.check("model", model, MODELS)
    kind = MODELS[model]
    weights = make_weights(layer_dims(feature_dim, hidden, classes, layers), kind, seed)
    return Stack([framework.layer(kind, w) for w in weights], kind.unit_rows, precision)
