"""Edge values that express an aggregation mode, for products with edge values; differentiable."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block

MODES = ("sum", "mean", "gcn")
NARROW = (torch.float16, torch.bfloat16)  # dtypes whose sums are taken in float32


def real(name: str, values: Tensor, dtype: torch.dtype) -> Tensor:
    """``values`` in a floating-point dtype. Raises ``UsageError`` for complex numbers."""
    if values.is_complex():
        raise UsageError(f"{name} must be real numbers, it is {str(values.dtype)[6:]}")
    return values.to(dtype)


def check_mode(mode: str) -> None:
    """Raises ``UsageError`` for a mode that there is not."""
    if mode not in MODES:
        raise UsageError(f"mode must be 'sum', 'mean' or 'gcn', not '{mode}'")


def mode_values(
    block: Block, dst: Tensor, mode: str, edge_weight: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """What each edge counts for ``[num_edges]``, and with ``"gcn"`` each destination ``[num_dst]``.

    ``dst`` int64 ``[num_edges]`` are the edges' destinations. Values of a narrow ``dtype`` are
    computed in float32 and rounded once. Differentiable in ``edge_weight``. Raises ``UsageError``
    for a wrong mode or number of weights.
    """
    if dtype in NARROW:
        wide, wide_own = mode_values(block, dst, mode, edge_weight, torch.float32)
        return wide.to(dtype), None if wide_own is None else wide_own.to(dtype)
    check_mode(mode)
    if edge_weight is None:
        degree = block.indptr.diff().to(dtype)
        values = torch.ones(block.num_edges, dtype=dtype, device=dst.device)
    elif edge_weight.shape != (block.num_edges,):
        raise UsageError(
            f"weights must have one row for each of the {block.num_edges} edges, its shape is"
            f" {tuple(edge_weight.shape)}"
        )
    else:
        values = real("edge_weight", edge_weight, dtype)
        degree = values.new_zeros(block.num_dst).index_add(0, dst, values)
    if mode == "sum":
        return values, None
    if mode == "mean":
        return values / degree[dst], None
    own = 1 / (degree + 1)
    return values * own[dst], own
