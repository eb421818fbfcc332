"""Fused bias and ReLU between two layers: one pass forward and one pass backward."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.aggregate_values import NARROW
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.library import native_operators


class _BiasRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor, bias: Tensor) -> Tensor:
        torch.ops.gnnbench.bias_relu_(x, bias)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor, Tensor]:
        (y,) = ctx.saved_tensors
        grad_x, grad_bias = torch.ops.gnnbench.bias_relu_backward(grad.contiguous(), y)
        return grad_x, grad_bias


def bias_relu(x: Tensor, bias: Tensor) -> Tensor:
    """``max(x + bias, 0)``, written in the place of ``x``; differentiable in both.

    ``x`` float32 or float64 ``[rows, dim]``, contiguous, the result of something whose gradient
    does not need it; ``bias`` ``[dim]`` in its dtype. Returns ``x``. NaN stays NaN. The gradient
    of ``bias`` is added up in an order that the shape decides, for any number of threads. Narrow
    rows, float16 or bfloat16 with a float32 bias, take torch's two operators, and a new tensor is
    returned. Raises ``UsageError`` for a wrong dtype or shape.
    """
    if x.dtype in NARROW:
        if bias.dtype != torch.float32 or x.shape[1:] != bias.shape:
            raise UsageError(f"bias must be float32 [{x.shape[-1]}] for rows {x.dtype}")
        return torch.relu_(x + bias.to(x.dtype))
    with native_operators():
        return _BiasRelu.apply(x, bias)
