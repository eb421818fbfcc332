"""Dropout by the counter-based generator: equal masks in every system, schedule and rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.kernels.aggregate_values import NARROW
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.library import native_operators


@dataclass(frozen=True)
class Masks:
    """The masks of a batch's rows: whether column i is kept depends on draw i of (``key``,
    ``batch``, layer, vertex) alone (native/include/gnnbench/rng.h), not on order or number of rows.

    ``nodes``  int32 or int64 ``[n]``: the vertices of the rows, global ids below 2^48
    ``p``      probability of 0, at least 0 and below 1
    ``place``  int64 ``[2]`` on the rows' device, or None: key and batch, in place of the fields.
               A CUDA graph reads there what changes between its launches.
    """

    nodes: Tensor
    p: float
    key: int = 0
    batch: int = 0
    place: Tensor | None = None

    def __call__(self, layer: int, x: Tensor) -> Tensor:
        """:func:`dropout` of the rows ``[rows, dim]`` of a layer: of the first nodes."""
        return dropout(x, self, layer)

    def applied(self, layer: int, x: Tensor) -> Tensor:
        """The same without a gradient."""
        nodes = self.nodes[: x.shape[0]]
        return torch.ops.gnnbench.dropout(x, nodes, self.key, self.batch, layer, self.p, self.place)


class _DropoutContext(Context, Protocol):
    masks: Masks
    layer: int


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _DropoutContext, x: Tensor, masks: Masks, layer: int) -> Tensor:
        ctx.masks, ctx.layer = masks, layer
        return masks.applied(layer, x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: _DropoutContext, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.masks.applied(ctx.layer, grad.contiguous()), None, None


def dropout(x: Tensor, masks: Masks, layer: int) -> Tensor:
    """Set each value of ``x`` to 0 with probability p, the others to x / (1 - p).

    Differentiable in ``x``, float32 or float64 ``[rows, dim]``, the rows of the first nodes of
    ``masks``; ``layer`` 0 to 65535. float16 and bfloat16 are scaled in float32 and rounded once.

    With n values of b bytes it takes one kernel, which reads and writes n b bytes, the lower bound,
    and 4 or 8 bytes a row. So does the backward, which draws the masks again: none is stored.
    Raises ``UsageError`` for a wrong dtype, shape, batch, layer or probability.
    """
    if x.dtype in NARROW:
        return dropout(x.float(), masks, layer).to(x.dtype)
    with native_operators():
        return _Dropout.apply(x.contiguous(), masks, layer)
