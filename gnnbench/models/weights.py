"""Weights shared by a model's forms in every framework, so that they start equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from gnnbench.models.kinds import LayerKind


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one layer, float32.

    ``neighbour`` ``[out, in]`` acts on the aggregate; ``self_`` ``[out, in]`` on the destination's
    own row (GraphSAGE) or None (GCN, whose aggregate holds it); ``bias`` ``[out]``.
    """

    neighbour: Tensor
    self_: Tensor | None
    bias: Tensor

    def mapped(self, change: Callable[[Tensor], Tensor]) -> LayerWeights:
        """``change`` of each of them."""
        own = None if self.self_ is None else change(self.self_)
        return LayerWeights(change(self.neighbour), own, change(self.bias))

    def tensors(self) -> list[Tensor]:
        """Those that there are: the neighbours', the own row's, the bias."""
        return [t for t in (self.neighbour, self.self_, self.bias) if t is not None]


def layer_dims(feature_dim: int, hidden: int, classes: int, layers: int) -> list[int]:
    """Widths from the input to the output: ``layers + 1`` values."""
    return [feature_dim, *[hidden] * (layers - 1), classes]


def make_weights(dims: Sequence[int], kind: LayerKind, seed: int) -> list[LayerWeights]:
    """The kind's weights, Glorot-uniform, and zero biases for every layer, drawn from ``seed``."""
    generator = torch.Generator().manual_seed(seed)

    def glorot(out: int, into: int) -> Tensor:
        bound = math.sqrt(6.0 / (out + into))
        return (torch.rand((out, into), generator=generator) * 2 - 1) * bound

    return [
        LayerWeights(
            glorot(out, into), glorot(out, into) if kind.own_weights else None, torch.zeros(out)
        )
        for into, out in pairwise(dims)
    ]
