"""Operators of attention on a block's edges, with several heads, and their gradients.

GAT (Velickovic et al., ICLR 2018): edge scores, their softmax over each destination's edges, and
sums of source rows with these weights. Each gradient is one pass over the block or its transpose.
Every sum has a fixed order, so results are bit-identical for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import sum_dtype
from gnnbench.kernels.aggregate_values import real
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.transpose import transposed


class _BlockContext(Context, Protocol):
    block: Block


class _EdgeAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _BlockContext, src: Tensor, dst: Tensor, block: Block) -> Tensor:
        ctx.block = block
        return torch.ops.gnnbench.edge_add(block.indptr, block.indices, src, dst)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: _BlockContext, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        block, grad = ctx.block, grad.contiguous()
        ops, grad_src, grad_dst = torch.ops.gnnbench, None, None
        if ctx.needs_input_grad[0]:
            back = transposed(block)
            grad_src = ops.edge_sums(back.indptr, grad, back.edge)
        if ctx.needs_input_grad[1]:
            grad_dst = ops.edge_sums(block.indptr, grad)
        return grad_src, grad_dst, None


class _EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _BlockContext, scores: Tensor, block: Block) -> Tensor:
        softmax: Tensor = torch.ops.gnnbench.edge_softmax(block.indptr, scores)
        ctx.block = block
        ctx.save_for_backward(softmax)
        return softmax

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: _BlockContext, grad: Tensor) -> tuple[Tensor, None]:
        (softmax,) = ctx.saved_tensors
        back = torch.ops.gnnbench.edge_softmax_backward(
            ctx.block.indptr, softmax, grad.contiguous()
        )
        return back, None


class HeadKernels(NamedTuple):
    """Operators called as ``forward(block, x, weights)``, ``transposed(block, grad, weights)``."""

    forward: Callable[[Block, Tensor, Tensor], Tensor]
    transposed: Callable[[Block, Tensor, Tensor], Tensor]


def _forward(block: Block, x: Tensor, weights: Tensor) -> Tensor:
    return torch.ops.gnnbench.aggregate_heads(
        block.indptr, block.indices, x, weights, block.num_dst
    )


def _transposed(block: Block, grad: Tensor, weights: Tensor) -> Tensor:
    return torch.ops.gnnbench.aggregate_heads_transposed(*transposed(block), grad, weights)


OURS = HeadKernels(_forward, _transposed)


class _HeadsContext(_BlockContext, Protocol):
    kernels: HeadKernels


class _AggregateHeads(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _HeadsContext, x: Tensor, weights: Tensor, block: Block, kernels: HeadKernels
    ) -> Tensor:
        ctx.block, ctx.kernels = block, kernels
        ctx.save_for_backward(weights, x if ctx.needs_input_grad[1] else None)
        return kernels.forward(block, x, weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: _HeadsContext, grad: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        weights, x = ctx.saved_tensors
        block, grad = ctx.block, grad.contiguous()
        grad_x = grad_weights = None
        if ctx.needs_input_grad[0]:
            grad_x = ctx.kernels.transposed(block, grad, weights)
        if ctx.needs_input_grad[1]:
            grad_weights = torch.ops.gnnbench.edge_dots(block.indptr, block.indices, grad, x)
        return grad_x, grad_weights, None, None


def _sums(t: Tensor) -> Tensor:
    return real("scores", t, sum_dtype(t)).contiguous()


def edge_add(block: Block, src: Tensor, dst: Tensor) -> Tensor:
    """At each edge the source's row and the destination's added: scores before their non-linearity.

    ``src`` ``[num_src, heads]``, ``dst`` ``[num_dst, heads]``; returns ``[num_edges, heads]``
    float64 of float64, else float32. Differentiable in both. Raises ``UsageError`` for a wrong
    shape or a block that is broken.
    """
    with native_operators():
        return _EdgeAdd.apply(_sums(src), _sums(dst), block)


def edge_softmax(block: Block, scores: Tensor) -> Tensor:
    """Softmax of ``scores`` ``[num_edges, heads]`` over each destination's edges, head by head.

    Returns ``[num_edges, heads]``, float64 of float64, else float32. Differentiable. Raises
    ``UsageError`` for a wrong shape or offsets that are broken.
    """
    with native_operators():
        return _EdgeSoftmax.apply(_sums(scores), block)


def aggregate_heads(
    block: Block, x: Tensor, weights: Tensor, kernels: HeadKernels = OURS
) -> Tensor:
    """In each head the sum of a destination's sources, weighted by edge.

    ``x`` float16, bfloat16, float32 or float64 ``[num_src, heads, width]``, ``weights``
    ``[num_edges, heads]``; returns ``[num_dst, heads, width]`` in the dtype of ``x``, summed in
    float32 or, of float64, float64. Differentiable in both. Raises ``UsageError`` for a wrong dtype
    or shape, or a block that is broken.
    """
    weights = real("weights", weights, sum_dtype(x)).contiguous()
    with native_operators():
        return _AggregateHeads.apply(x.contiguous(), weights, block, kernels)


def attend(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float,
    kernels: HeadKernels = OURS,
) -> Tensor:  # fmt: skip
    """GAT's layer but for its products: ``z`` weighted by the attention of its scores.

    As :class:`gnnbench.models.native.Attend` says: ``z`` ``[num_src, heads, width]``, scores
    ``[num_src, heads]`` and ``[num_dst, heads]``; returns ``[num_dst, heads, width]``.
    """
    scores = torch.nn.functional.leaky_relu(edge_add(block, of_source, of_destination), slope)
    return aggregate_heads(block, z, edge_softmax(block, scores), kernels)
