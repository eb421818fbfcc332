"""GNNAdvisor's aggregation: neighbour groups and a 2D workload, prepared anew in every call."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate_values import check_mode
from gnnbench.kernels.library import load_native, native_errors
from gnnbench.kernels.transpose import transposed

NOBODY: AbstractContextManager[Any] = nullcontext()


def sum_groups(
    indptr: Tensor, indices: Tensor, x: Tensor, group: int, dim_workers: int,
    watch: AbstractContextManager[Any] = NOBODY,
) -> Tensor:  # fmt: skip
    """Sums of rows ``[len(indptr) - 1, dim]`` of ``x`` by groups of at most ``group`` entries.

    The groups are made in the call, within ``watch``, as GNNAdvisor's preprocessing makes them.
    Raises ``UsageError`` for a wrong argument.
    """
    load_native()
    ops = torch.ops.gnnbench
    with native_errors():
        with watch:
            starts, rows = ops.neighbor_groups(indptr, group)
        out: Tensor = ops.aggregate_groups(
            starts, rows, indices, x, indptr.numel() - 1, dim_workers
        )
    return out


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, block: Block, *how: Any) -> Tensor:
        ctx.block, ctx.how = block, how
        return sum_groups(block.indptr, block.indices, x, *how)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        back = transposed(ctx.block)
        grad_x = sum_groups(back.indptr, back.dst, grad.contiguous(), *ctx.how)
        return grad_x, None, *(None for _ in ctx.how)


def aggregate_groups(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None, *,
    group: int = 32, dim_workers: int = 32, watch: AbstractContextManager[Any] = NOBODY,
) -> Tensor:  # fmt: skip
    """As :class:`gnnbench.models.native.Aggregate` says, as GNNAdvisor (Wang et al., OSDI 2021).

    A row's neighbours are cut into groups of at most ``group``, the unit of work, each added to its
    row; ``dim_workers`` threads share a group's columns (on the CPU vector lanes do). The groups of
    a sampled block serve once, so they are made in every call, forward and backward, over the block
    and over its transpose. ``x`` float32 or float64 ``[num_src, dim]``.

    Raises ``UnsupportedError`` for ``edge_weight``, which GNNAdvisor's kernels do not take, and
    ``UsageError`` for another wrong argument.
    """
    if edge_weight is not None:
        raise UnsupportedError("the 'gnnadvisor' aggregation takes no edge weights; leave them out")
    check_mode(mode)
    out: Tensor = _Sums.apply(x.contiguous(), block, group, dim_workers, watch)
    if mode == "sum":
        return out
    degree = block.indptr.diff().unsqueeze(1)
    if mode == "gcn":
        return (out + x[: block.num_dst]) / (degree + 1)
    return out / degree.clamp(min=1)
