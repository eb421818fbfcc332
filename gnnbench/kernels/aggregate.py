"""Neighbour aggregation on a block, with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate_values import real
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.library import load_native, native_operators
from gnnbench.kernels.transpose import edge_dst, transposed

Gradients = tuple[Tensor | None, Tensor | None, None, None, None]


class Kernels(NamedTuple):
    """Operators with the arguments of ``aggregate`` and ``aggregate_transposed``.

    ``forward(indptr, indices, x, num_dst, mode, weights)``;
    ``transposed(indptr, t_indptr, t_dst, t_edge, grad, mode, weights)``;
    ``scattered(indptr, indices, grad, num_src, mode, weights)``, in place of ``transposed``: a
    gradient that needs no transpose
    """

    forward: Callable[[Tensor, Tensor, Tensor, int, str, Tensor | None], Tensor]
    transposed: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, str, Tensor | None], Tensor]
    scattered: Callable[[Tensor, Tensor, Tensor, int, str, Tensor | None], Tensor] | None = None

    def gradient(self, block: Block, grad: Tensor, mode: str, weights: Tensor | None) -> Tensor:
        """Gradient of ``x`` from that of the result."""
        if self.scattered is not None:
            return self.scattered(block.indptr, block.indices, grad, block.num_src, mode, weights)
        return self.transposed(block.indptr, *transposed(block), grad, mode, weights)


class _AggregateContext(Context, Protocol):
    block: Block
    mode: str
    kernels: Kernels


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _AggregateContext, x: Tensor, weights: Tensor | None, block: Block, mode: str,
        kernels: Kernels,
    ) -> Tensor:  # fmt: skip
        ctx.block, ctx.mode, ctx.kernels = block, mode, kernels
        ctx.save_for_backward(weights, x if ctx.needs_input_grad[1] else None)
        return kernels.forward(block.indptr, block.indices, x, block.num_dst, mode, weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: _AggregateContext, grad: Tensor) -> Gradients:
        weights, x = ctx.saved_tensors
        block, mode, grad = ctx.block, ctx.mode, grad.contiguous()
        grad_x = grad_weights = None
        if ctx.needs_input_grad[0]:
            grad_x = ctx.kernels.gradient(block, grad, mode, weights)
        if ctx.needs_input_grad[1]:
            grad_weights = _grad_weights(block, mode, grad, x, weights)
        return grad_x, grad_weights, None, None, None


def _grad_weights(block: Block, mode: str, grad: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    ops = torch.ops.gnnbench
    dots: Tensor = ops.edge_dots(block.indptr, block.indices, grad.unsqueeze(1), x.unsqueeze(1))
    if mode == "sum":
        return dots.squeeze(1)
    # out = total / degree, so d out / d w = (x - out) / degree, and grad * out is a sum of dots.
    weights = weights.unsqueeze(1)
    degree, along = ops.edge_sums(
        block.indptr, torch.cat([weights, weights * dots], dim=1)
    ).unbind(1)  # fmt: skip
    if mode == "gcn":
        degree = degree + 1
        along = along + (grad.to(dots.dtype) * x[: block.num_dst]).sum(1)
    dst = edge_dst(block)
    return (dots.squeeze(1) - (along / degree)[dst]) / degree[dst]


def sum_dtype(x: Tensor) -> torch.dtype:
    """Dtype of sums: float64 for float64, float32 for float32 and narrower types."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def aggregate_by(
    kernels: Kernels, block: Block, x: Tensor, mode: str, edge_weight: Tensor | None
) -> Tensor:
    """:func:`aggregate` by other operators for the same sums."""
    if edge_weight is not None:
        edge_weight = real("edge_weight", edge_weight, sum_dtype(x)).contiguous()
    with native_operators():
        return _Aggregate.apply(x.contiguous(), edge_weight, block, mode, kernels)


def aggregate(block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None) -> Tensor:
    """Aggregate the sources of a block into its destinations; differentiable in ``x`` and
    ``edge_weight``.

    ``x`` float16, bfloat16, float32 or float64 ``[num_src, dim]``; sums are taken in float32, of
    float64 in float64, and rounded once. ``edge_weight`` ``[num_edges]`` of any of these, or None
    where every edge has weight 1. ``mode``: ``"sum"``, weighted; ``"mean"``, that by the sum of
    the weights, 0 for a destination without neighbours; ``"gcn"``, (weighted sum + self) / (sum of
    weights + 1), where self of destination v is row v of ``x``. Returns ``[num_dst, dim]`` in the
    dtype of ``x``. Deterministic: sums run in the order of the edges (forward) and of the
    destinations (backward, over :func:`gnnbench.kernels.transpose.transposed`) for any number of
    threads.

    Raises ``UsageError`` for a wrong mode, dtype or shape, or a block that is broken.
    """
    load_native()
    ops = torch.ops.gnnbench
    return aggregate_by(
        Kernels(ops.aggregate, ops.aggregate_transposed), block, x, mode, edge_weight
    )
