"""Initial weights of a model, equal in every framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.models.kinds import Form, LayerKind

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one layer, float32; a subclass for each form of layer, its fields the tensors."""

    def named(self) -> dict[str, Tensor]:
        """The tensors that there are, by name, in the order of the fields."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def tensors(self) -> list[Tensor]:
        """The same without names."""
        return list(self.named().values())

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Self:
        """``change`` of each of them."""
        return replace(self, **{name: change(value) for name, value in self.named().items()})


@dataclass(frozen=True)
class LinearWeights(LayerWeights):
    """``neighbour`` ``[out, in]`` acts on the aggregate; ``self_`` ``[out, in]`` on the
    destination's own row (GraphSAGE) or None (GCN, whose aggregate holds it); ``bias`` ``[out]``.
    """

    neighbour: Tensor
    self_: Tensor | None
    bias: Tensor


@dataclass(frozen=True)
class MlpWeights(LayerWeights):
    """``first`` ``[inner, in]`` and ``second`` ``[out, inner]``, each with its bias."""

    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor


@dataclass(frozen=True)
class AttentionWeights(LayerWeights):
    """``neighbour`` ``[heads * width, in]`` acts on every row; ``source`` and ``destination``
    ``[heads, width]`` make scores of the two ends of an edge; ``bias`` ``[heads * width]``."""

    neighbour: Tensor
    source: Tensor
    destination: Tensor
    bias: Tensor


@dataclass(frozen=True)
class ConvolveWeights(LayerWeights):
    """``inner`` ``[inner, in]`` (the paper's Q) acts on the neighbours' rows before their mean,
    ``joined`` ``[out, in + inner]`` (W) on the own row and that mean, side by side; each has its
    bias."""

    inner: Tensor
    inner_bias: Tensor
    joined: Tensor
    joined_bias: Tensor


def layer_dims(feature_dim: int, hidden: int, classes: int, layers: int) -> list[int]:
    """Widths from the input to the output: ``layers + 1`` values."""
    return [feature_dim, *[hidden] * (layers - 1), classes]


def make_weights(dims: Sequence[int], kind: LayerKind, seed: int) -> list[LayerWeights]:
    """The kind's weights, Glorot-uniform, and zero biases for every layer, drawn from ``seed``.

    Those of MLPs are uniform within 1 / sqrt(in), as torch's ``Linear`` draws them: with Glorot's
    bound the sums of neighbours, which nothing divides, grow so that a loss begins at 50. What is
    inner to a layer is as wide as the first layer's rows: the hidden width. Raises ``UsageError``
    where heads cannot share it.
    """
    for hidden in dims[1:-1]:
        kind.check_hidden(hidden)
    generator = torch.Generator().manual_seed(seed)

    def glorot(out: int, into: int) -> Tensor:
        return uniform(out, into, math.sqrt(6.0 / (out + into)))

    def uniform(out: int, into: int, bound: float) -> Tensor:
        return (torch.rand((out, into), generator=generator) * 2 - 1) * bound

    def dense(out: int, into: int) -> Tensor:
        return uniform(out, into, 1 / math.sqrt(into))

    def linear(into: int, out: int, last: bool) -> LayerWeights:
        own = kind.own_weights
        return LinearWeights(
            glorot(out, into), glorot(out, into) if own else None, torch.zeros(out)
        )

    def mlp(into: int, out: int, last: bool) -> LayerWeights:
        return MlpWeights(
            dense(dims[1], into), torch.zeros(dims[1]), dense(out, dims[1]), torch.zeros(out)
        )

    def attention(into: int, out: int, last: bool) -> LayerWeights:
        heads = 1 if last else kind.heads
        ends = (heads, out // heads)
        return AttentionWeights(glorot(out, into), glorot(*ends), glorot(*ends), torch.zeros(out))

    def convolve(into: int, out: int, last: bool) -> LayerWeights:
        return ConvolveWeights(
            glorot(dims[1], into),
            torch.zeros(dims[1]),
            glorot(out, into + dims[1]),
            torch.zeros(out),
        )

    forms: dict[Form, Callable[[int, int, bool], LayerWeights]] = {
        "linear": linear, "mlp": mlp, "attention": attention, "convolve": convolve,
    }  # fmt: skip
    make, last = forms[kind.form], len(dims) - 2
    return [make(into, out, at == last) for at, (into, out) in enumerate(pairwise(dims))]
