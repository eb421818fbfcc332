"""GNNAdvisor's aggregation: neighbour groups and a 2D workload, computed in every call."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate_values import NARROW, check_mode
from gnnbench.kernels.autograd import Context
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.transpose import transposed

UNTIMED: AbstractContextManager[None] = nullcontext()


def sum_groups(
    indptr: Tensor, indices: Tensor, x: Tensor, group: int, dim_workers: int,
    watch: AbstractContextManager[None] = UNTIMED,
) -> Tensor:  # fmt: skip
    """Sums of rows ``[len(indptr) - 1, dim]`` of ``x`` by groups of at most ``group`` entries.

    The groups are made in each call, as by GNNAdvisor's preprocessing; ``watch`` times that.
    Raises ``UsageError`` for a wrong argument.
    """
    with native_operators() as ops:
        with watch:
            starts, rows = ops.neighbor_groups(indptr, group)
        return ops.aggregate_groups(starts, rows, indices, x, indptr.numel() - 1, dim_workers)


class _SumsContext(Context, Protocol):
    block: Block
    group: int
    dim_workers: int
    watch: AbstractContextManager[None]


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _SumsContext, x: Tensor, block: Block, group: int, dim_workers: int,
        watch: AbstractContextManager[None],
    ) -> Tensor:  # fmt: skip
        ctx.block, ctx.group, ctx.dim_workers, ctx.watch = block, group, dim_workers, watch
        return sum_groups(block.indptr, block.indices, x, group, dim_workers, watch)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: _SumsContext, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        back = transposed(ctx.block)
        grad_x = sum_groups(
            back.indptr, back.dst, grad.contiguous(), ctx.group, ctx.dim_workers, ctx.watch
        )
        return grad_x, None, None, None, None


def aggregate_groups(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None, *,
    group: int = 32, dim_workers: int = 32, watch: AbstractContextManager[None] = UNTIMED,
) -> Tensor:  # fmt: skip
    """GNNAdvisor (Wang et al., OSDI 2021), as a :class:`gnnbench.models.native.Aggregate`.

    A row's neighbours are cut into groups of at most ``group``, the unit of work; each group's sum
    is added to its row. ``dim_workers`` threads share a group's columns (on the CPU: vector lanes).
    A sampled block is used once, so every call makes its groups: forward for the block, backward
    for its transpose. ``x`` is float16, bfloat16, float32 or float64 ``[num_src, dim]``; the first
    two are summed in float32, which the kernels take, and rounded once.

    Raises ``UnsupportedError`` for ``edge_weight``, which GNNAdvisor's kernels do not take, and
    ``UsageError`` for another wrong argument.
    """
    if edge_weight is not None:
        raise UnsupportedError("the 'gnnadvisor' aggregation takes no edge weights; leave them out")
    check_mode(mode)
    if x.dtype in NARROW:
        sums = aggregate_groups(
            block, x.float(), mode, group=group, dim_workers=dim_workers, watch=watch
        )
        return sums.to(x.dtype)
    out: Tensor = _Sums.apply(x.contiguous(), block, group, dim_workers, watch)
    if mode == "sum":
        return out
    degree = block.indptr.diff().unsqueeze(1)
    if mode == "gcn":
        return (out + x[: block.num_dst]) / (degree + 1)
    return out / degree.clamp(min=1)
