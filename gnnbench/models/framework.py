"""A framework: whose layers a model is made of, and in what form they take a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gnnbench.models.kinds import LayerKind, Mode
from gnnbench.models.weights import LayerWeights

# A block as a framework's layers take it, rows ``[num_src, width]`` and weights ``[num_edges]`` or
# None -> rows ``[num_dst, width]``; differentiable in the rows.
Aggregation = Callable[[Any, Tensor, Tensor | None], Tensor]
# The same, rows ``[num_src, heads, width]``, scores ``[num_src, heads]`` and ``[num_dst, heads]``
# and the slope of their LeakyReLU -> ``[num_dst, heads, width]``; differentiable in all three.
Attention = Callable[[Any, Tensor, Tensor, Tensor, float], Tensor]


class Framework(ABC):
    """Makes layers of the same values and gradients as every other framework's."""

    name: ClassVar[str]

    @abstractmethod
    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """A layer of ``kind`` that starts with (copies of) ``weights``.

        Its call takes a block of :meth:`blocks` and rows float32 ``[num_src, in]`` and gives
        ``[num_dst, out]``. Raises ``UnsupportedError`` for a kind that the framework has not.
        """

    @abstractmethod
    def blocks(self, batch: Any) -> list[Any]:
        """The batch's blocks in the form that the layers take, the input layer first.

        ``batch`` has ``blocks`` of ours; where it was drawn in this framework's own form it is
        taken in that form, and converted otherwise.
        """

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation | None:
        """How the layers aggregate, without the rest of a layer; None where it is not to be had.

        ``weighted``: with weights of edges.
        """
        return None

    def attention(self) -> Attention | None:
        """How they weigh and aggregate by attention, likewise."""
        return None


def set_to(parameter: Tensor, values: Tensor) -> None:
    """Give a framework's parameter our values, in its own shape."""
    with torch.no_grad():
        parameter.copy_(values.view(parameter.shape))


def dense(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A linear map that starts with (copies of) ``weight`` ``[out, in]`` and ``bias``."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    set_to(layer.weight, weight)
    set_to(layer.bias, bias)
    return layer
