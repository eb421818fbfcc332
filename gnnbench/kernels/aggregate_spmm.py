"""Aggregation by torch's product of a sparse CSR matrix and a dense one."""

from __future__ import annotations

import warnings
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate_values import NARROW, mode_values
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.transpose import edge_dst


class _ProductContext(Context, Protocol):
    block: Block


class _Product(torch.autograd.Function):
    """Torch's own gradient sums the values of parallel edges, so it is written out here."""

    @staticmethod
    def forward(
        ctx: _ProductContext, values: Tensor, x: Tensor, block: Block, dst: Tensor
    ) -> Tensor:
        ctx.block = block
        ctx.save_for_backward(values, x if ctx.needs_input_grad[0] else None, dst)
        with torch.autocast(x.device.type, enabled=False):  # which casts no sparse matrix
            return _matrix(block, values) @ x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: _ProductContext, grad: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        values, x, dst = ctx.saved_tensors
        grad_values = grad_x = None
        if ctx.needs_input_grad[0]:
            grad_values = (grad[dst] * x[ctx.block.indices]).sum(1)
        if ctx.needs_input_grad[1]:
            grad_x = _matrix(ctx.block, values).t() @ grad.contiguous()
        return grad_values, grad_x, None, None


def _matrix(block: Block, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            block.indptr, block.indices, values, size=(block.num_dst, block.num_src),
            check_invariants=False,
        )  # fmt: skip


def aggregate_spmm(block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None) -> Tensor:
    """A :class:`gnnbench.models.native.Aggregate` by torch's sparse product (MKL, cuSPARSE).

    ``x`` ``[num_src, dim]`` float16, bfloat16, float32 or float64. On a CPU, where torch's product
    takes no narrow rows, these are summed in float32 and rounded once. The gradient of ``x`` is
    torch's product with the matrix's transpose; the library decides whether that is deterministic.
    Raises ``UsageError`` as :func:`gnnbench.kernels.aggregate_values.mode_values` does.
    """
    if x.device.type == "cpu" and x.dtype in NARROW:
        return aggregate_spmm(block, x.float(), mode, edge_weight).to(x.dtype)
    dst = edge_dst(block)
    values, own = mode_values(block, dst, mode, edge_weight, x.dtype)
    out: Tensor = _Product.apply(values, x.contiguous(), block, dst)
    return out if own is None else out + own.unsqueeze(1) * x[: block.num_dst]
