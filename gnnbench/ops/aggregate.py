"""Neighbour aggregation on a block, with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import Block
from gnnbench.ops.library import load_native, native_errors


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, indptr: Tensor, indices: Tensor, num_dst: int, mode: str
    ) -> Tensor:
        ctx.save_for_backward(indptr, indices)
        ctx.num_src, ctx.mode = x.shape[0], mode
        out: Tensor = torch.ops.gnnbench.aggregate(indptr, indices, x, num_dst, mode)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        indptr, indices = ctx.saved_tensors
        grad_x = torch.ops.gnnbench.aggregate_backward(
            indptr, indices, grad.contiguous(), ctx.num_src, ctx.mode
        )
        return grad_x, None, None, None, None


def aggregate(block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None) -> Tensor:
    """Aggregate the sources of a block into its destinations; differentiable in ``x``.

    ``x`` float32 or float64 ``[num_src, dim]``. ``mode``: ``"sum"``; ``"mean"``, 0 for a
    destination without neighbours; ``"gcn"``, (sum of the sampled + self) / (d + 1), where self of
    destination v is row v of ``x``. Returns ``[num_dst, dim]``. Deterministic: sums run in the
    order of the edges (forward) and of the destinations (backward) for any number of threads.

    Raises ``UsageError`` for a wrong mode, dtype or shape, or a block that is broken, and
    ``UnsupportedError`` for ``edge_weight``, which the operator does not take.
    """
    if edge_weight is not None:
        raise UnsupportedError("the 'csr' aggregation takes no edge weights; leave them out")
    load_native()
    with native_errors():
        out: Tensor = _Aggregate.apply(
            x.contiguous(), block.indptr, block.indices, block.num_dst, mode
        )
    return out
