"""Single kernels of one batch, and the aggregation calls of a model.

The calls are recorded, not listed: the native layers run on meta tensors over an aggregation that
records its arguments. Each framework then executes the same calls in its own way
(``gnnbench.roofline.passes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.models.kinds import MODELS, Mode
from gnnbench.models.native import Native
from gnnbench.models.stack import build
from gnnbench.roofline.work import Work
from gnnbench.schema.roofline import KernelKey

ATTENTION = "attention"  # in place of a mode


@dataclass(frozen=True)
class Kernel:
    """One kernel on one batch. ``ready`` prepares its inputs and returns the timed function.

    ``direction``  of an aggregation: ``forward``; ``backward`` on a fresh block, so that a
                   transpose is part of it; ``backward, kept`` on a block with its transpose
    ``layer``      counts from 1 at the input
    ``width``      elements of a row, over all ``heads`` (0: no heads)
    ``wrong``      checks the result; returns what is wrong with it, or ""
    """

    name: str
    direction: str
    layer: int
    mode: str
    width: int
    heads: int
    work: Work
    ready: Callable[[], Callable[[], object]]
    wrong: Callable[[], str] = lambda: ""

    def key(self) -> KernelKey:
        """The fields that identify it within the batch."""
        return {
            "name": self.name, "direction": self.direction, "layer": self.layer,
            "mode": self.mode, "width": self.width, "heads": self.heads,
        }  # fmt: skip


@dataclass(frozen=True)
class AggregationCall:
    """One aggregation of a model, over the block of ``layer`` (1 is the input layer).

    ``mode`` is None for attention, which has ``heads`` and a ``slope``; ``width`` is the number of
    elements of a row, over all heads.
    """

    layer: int
    mode: Mode | None
    width: int
    weighted: bool = False
    heads: int = 0
    slope: float = 0.0

    @property
    def kind(self) -> str:
        """The mode, or ``attention``."""
        return self.mode or ATTENTION


def aggregation_calls(
    model: str, blocks: Sequence[Block], feature_dim: int, hidden: int, classes: int
) -> list[AggregationCall]:
    """The aggregation calls of a model's layers over blocks, the input layer first."""
    calls: list[AggregationCall] = []
    meta_blocks = [block.mapped(lambda t: t.to("meta")) for block in blocks]

    def layer_of(block: Block) -> int:
        return next(n for n, b in enumerate(meta_blocks, 1) if b is block)

    def record(block: Block, x: Tensor, mode: Mode, edge_weight: Tensor | None = None) -> Tensor:
        calls.append(AggregationCall(layer_of(block), mode, x.shape[1], edge_weight is not None))
        return x.new_empty(block.num_dst, x.shape[1])

    def record_attention(
        block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
    ) -> Tensor:
        _, heads, width = z.shape
        calls.append(AggregationCall(layer_of(block), None, heads * width, False, heads, slope))
        return z.new_empty(block.num_dst, heads, width)

    for block in meta_blocks if MODELS[model].symmetric else []:
        block.symmetric = torch.empty(block.num_edges, device="meta")
    with torch.no_grad():
        framework = Native(record, record_attention)
        stack = build(model, framework, feature_dim, hidden, classes, len(blocks), 0)
        rows = torch.empty(meta_blocks[0].num_src, feature_dim, device="meta")
        stack.to("meta")(meta_blocks, rows)
    return calls
