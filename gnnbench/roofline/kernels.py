"""The kernels of one batch, each by itself, and which aggregations a model asks for.

What a model aggregates is not said a second time here: its layers of ours are run on tensors
without data, over an aggregation that notes what it is asked for. Each framework then does the same
its own way (``gnnbench.roofline.passes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.models.kinds import Mode
from gnnbench.models.native import Native
from gnnbench.models.stack import build
from gnnbench.roofline.work import Work

ATTENTION = "attention"  # in place of a mode


@dataclass(frozen=True)
class Kernel:
    """One kernel on one batch. ``ready`` makes everything that is not its work and returns what is.

    ``direction`` of an aggregation: ``forward``; ``backward``, on a block that no backward has seen
    before, so that a transpose is part of it; ``backward, kept``, on one that has. ``layer`` counts
    from 1 at the input; ``width`` are elements of a row, of all ``heads`` (0: it has none).
    ``wrong`` says what is wrong with the result, or "".
    """

    name: str
    direction: str
    layer: int
    mode: str
    width: int
    heads: int
    work: Work
    ready: Callable[[], Callable[[], Any]]
    wrong: Callable[[], str] = lambda: ""

    def ident(self) -> dict[str, Any]:
        """What tells it from the batch's others."""
        names = ("name", "direction", "layer", "mode", "width", "heads")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Asked:
    """An aggregation that a model asks for: of the block of ``layer``, from 1 at the input.

    ``mode`` is None of attention, which has ``heads`` and its ``slope``; ``width`` are the elements
    of a row, of all heads.
    """

    layer: int
    mode: Mode | None
    width: int
    weighted: bool = False
    heads: int = 0
    slope: float = 0.0

    @property
    def words(self) -> str:
        """The mode, or that it is attention."""
        return self.mode or ATTENTION


def asked_of(
    model: str, blocks: Sequence[Block], feature_dim: int, hidden: int, classes: int
) -> list[Asked]:
    """The aggregations of a model's layers over blocks, the input layer first."""
    found: list[Asked] = []
    here = [block.mapped(lambda t: t.to("meta")) for block in blocks]

    def layer_of(block: Block) -> int:
        return next(n for n, b in enumerate(here, 1) if b is block)

    def note(block: Block, x: Tensor, mode: Mode, edge_weight: Tensor | None = None) -> Tensor:
        found.append(Asked(layer_of(block), mode, x.shape[1], edge_weight is not None))
        return x.new_empty(block.num_dst, x.shape[1])

    def note_attention(
        block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
    ) -> Tensor:
        _, heads, width = z.shape
        found.append(Asked(layer_of(block), None, heads * width, False, heads, slope))
        return z.new_empty(block.num_dst, heads, width)

    with torch.no_grad():
        framework = Native(note, note_attention)
        stack = build(model, framework, feature_dim, hidden, classes, len(blocks), 0)
        stack.to("meta")(here, torch.empty(here[0].num_src, feature_dim, device="meta"))
    return found
