"""A framework: whose layers a model is made of, and in what form they take a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor, nn

from gnnbench.models.kinds import LayerKind, Mode
from gnnbench.models.weights import LayerWeights

# A block as a framework's layers take it, rows ``[num_src, width]`` and weights ``[num_edges]`` or
# None -> rows ``[num_dst, width]``; differentiable in the rows.
Aggregation = Callable[[Any, Tensor, Tensor | None], Tensor]


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
