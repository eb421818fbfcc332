"""Calls of the aggregation's CUDA kernels on the host (native/tests/cuda_on_host/aggregate.cpp)."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import torch
from drawn_blocks import DrawnBlock, assert_within
from ops_on_host import on_host
from torch import Tensor

MODES = {"sum": 0, "mean": 1, "gcn": 2}
DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}
SIMPLE, TUNED, MEMORY_AWARE = 0, 1, 2
WARP, WARP_TRANSPOSED, SCATTER = 4, 5, 6
SPREAD = (3, 0, 0)  # chunks of 32 or more rows and edges; for backward passes and mode sum
SHAPES = [(37, 60, 9, 0), (9, 20, 3, 400)]
# Memory-Aware by warps: columns, and 8 * warps + rows.
WARPS = [(WARP, 128, 8 * 8 + 4), (WARP, 64, 2 * 8 + 7), (WARP, 128, 1 * 8 + 1)]


def load_kernels() -> Any:
    loaded = on_host("aggregate", "aggregate")
    loaded.groups_of.restype = ctypes.c_int64
    return loaded


def c_args(values: tuple[Any, ...]) -> list[Any]:
    """Arguments for ctypes: tensors as addresses, integers as 64 bits."""
    return [
        v if v is None or isinstance(v, ctypes.c_int)
        else ctypes.c_void_p(v.data_ptr()) if isinstance(v, Tensor) else ctypes.c_int64(v)
        for v in values
    ]  # fmt: skip


def c_int(v: int) -> ctypes.c_int:
    return ctypes.c_int(v)


def stable_transpose(block: DrawnBlock) -> list[Tensor]:
    edge = torch.argsort(block.indices, stable=True)
    offsets = torch.zeros(block.num_src + 1, dtype=torch.int32)
    offsets[1:] = torch.bincount(block.indices, minlength=block.num_src).cumsum(0)
    return [offsets, block.rows[edge].int(), edge.int()]


def row_sums(
    kernels: Any, kernel: tuple[int, int, int], indptr: Tensor, columns: Tensor | None, x: Tensor,
    mode: str, weights: Tensor | None = None, heads: int = 1, block: Tensor | None = None,
    edges: Tensor | None = None, totals: Tensor | None = None,
) -> Tensor:  # fmt: skip
    num_rows = indptr.numel() - 1
    out = torch.full((num_rows, x.shape[1]), float("nan"), dtype=x.dtype)
    num_dst = 0 if block is None else block.numel() - 1
    is_transposed = kernel[0] == WARP and edges is not None
    kernels.row_sums_of(
        *c_args((
            c_int(WARP_TRANSPOSED if is_transposed else kernel[0]), c_int(DTYPES[x.dtype]),
            indptr, columns, num_rows, int(indptr[-1]), x.shape[0], x.shape[1], x, out,
            c_int(MODES[mode]), weights, heads, block, edges, totals, num_dst,
            c_int(kernel[1]), c_int(kernel[2]),
        ))
    )  # fmt: skip
    return out


def check_sums_of_rows(
    kernels: Any, kernel: tuple[int, int, int], block: DrawnBlock, x: Tensor, grad: Tensor,
    mode: str, weights: Tensor | None,
) -> None:  # fmt: skip
    """Checks forward and backward of one aggregation."""
    indptr, indices = block.indptr, block.indices
    back = stable_transpose(block)
    matrix = block.matrix(mode, weights)
    length = int(indptr.diff().max())
    if kernel != SPREAD or mode == "sum":
        actual = row_sums(kernels, kernel, indptr, indices, x, mode, weights)
        assert_within(actual, matrix @ x.double(), matrix @ x.double().abs(), length)
    if kernel[0] == SIMPLE:
        return
    totals = None
    if weights is not None and mode != "sum":
        totals = row_sums(kernels, (TUNED, 4, 0), indptr, None, weights[:, None], "sum")
    actual = row_sums(
        kernels, kernel, back[0], back[1], grad, mode, weights, 1, indptr, back[2], totals
    )
    length += int(back[0].diff().max())
    matrix = matrix.T
    assert_within(actual, matrix @ grad.double(), matrix @ grad.double().abs(), length)


def rows_of(degrees: list[int], num_columns: int) -> tuple[Tensor, Tensor]:
    indptr = torch.tensor([0, *itertools.accumulate(degrees)], dtype=torch.int32)
    draws = torch.Generator().manual_seed(len(degrees))
    return indptr, torch.randint(
        num_columns, (int(indptr[-1]),), generator=draws, dtype=torch.int32
    )
