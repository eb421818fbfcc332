"""Interface of a framework: it builds layers, and converts a batch to their block type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from gnnbench.core.minibatch import Batch
from gnnbench.models.kinds import LayerKind, Mode
from gnnbench.models.weights import LayerWeights

BlockT = TypeVar("BlockT")  # type of a block as the framework's layers take it

# (block, rows ``[num_src, width]``, weights ``[num_edges]`` or None) -> rows ``[num_dst, width]``;
# differentiable in the rows.
Aggregation = Callable[[BlockT, Tensor, Tensor | None], Tensor]
# (block, rows ``[num_src, heads, width]``, scores ``[num_src, heads]`` and ``[num_dst, heads]``,
# slope of their LeakyReLU) -> ``[num_dst, heads, width]``; differentiable in all three tensors.
Attention = Callable[[BlockT, Tensor, Tensor, Tensor, float], Tensor]


class Framework(ABC, Generic[BlockT]):
    """Builds layers with the same values and gradients as every other framework."""

    name: ClassVar[str]

    @abstractmethod
    def layer(self, kind: LayerKind, weights: LayerWeights) -> nn.Module:
        """Build a layer of ``kind`` with copies of ``weights``.

        It maps a block of :meth:`blocks` and float32 rows ``[num_src, in]`` to ``[num_dst, out]``,
        bfloat16 rows, too, under the ``torch.autocast`` of a cell with that precision.
        Raises ``UnsupportedError`` for a kind that the framework lacks.
        """

    @abstractmethod
    def blocks(self, batch: Batch) -> list[BlockT]:
        """The batch's blocks in the type that the layers take, the input layer first.

        A batch that was sampled in this type is not converted.
        """

    def aggregation(self, mode: Mode, weighted: bool) -> Aggregation[BlockT] | None:
        """The aggregation of the layers alone; None where it is not available.

        ``weighted``: with edge weights.
        """
        return None

    def attention(self) -> Attention[BlockT] | None:
        """The sum weighted by attention alone, likewise."""
        return None


def set_to(parameter: Tensor, values: Tensor) -> None:
    """Copy ``values`` into a parameter of a framework, in the parameter's shape."""
    with torch.no_grad():
        parameter.copy_(values.view(parameter.shape))


def dense(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A linear layer with copies of ``weight`` ``[out, in]`` and ``bias`` ``[out]``."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    set_to(layer.weight, weight)
    set_to(layer.bias, bias)
    return layer
