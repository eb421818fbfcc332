"""Memory-Aware kernels on the host: equal bits for every shape and schedule, and the scatter."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from drawn_blocks import DrawnBlock, assert_within, drawn_block, sum_dtype
from sums_on_host import (
    DTYPES,
    MODES,
    SCATTER,
    SHAPES,
    TUNED,
    WARP,
    WARP_TRANSPOSED,
    c_args,
    c_int,
    load_kernels,
    row_sums,
    rows_of,
)


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load_kernels()


@pytest.mark.parametrize("columns, shape", [(128, 68), (64, 11), (64, 15)])
@pytest.mark.parametrize("dim", [3, 64, 100, 130, 256])
@pytest.mark.parametrize("weighted", [False, True])
def test_short_rows_by_warps_are_identical_to_the_tuned_kernel(
    kernels, weighted, dim, columns, shape
):
    """Rows that are not split, for any number of warps, columns and rows."""
    block = drawn_block(40, 60, 12, seed=dim, hub=128)
    draws = torch.Generator().manual_seed(dim)
    x = torch.randn(60, dim, generator=draws)
    weights = torch.rand(block.indices.numel(), generator=draws) + 0.1 if weighted else None
    for mode in MODES:
        actual, expected = (
            row_sums(kernels, kernel, block.indptr, block.indices, x, mode, weights)
            for kernel in ((WARP, columns, shape), (TUNED, 4, 0))
        )
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("kernel", [WARP, WARP_TRANSPOSED])
@pytest.mark.parametrize("degrees", [[128, 129, 0, 1, 3200, 127, 700], [5000], [0] * 9])
def test_long_rows_by_warps_do_not_depend_on_shape_or_schedule(kernels, kernel, degrees):
    """The teams of a block, or pieces in a list of nondeterministic order."""
    indptr, columns = rows_of(degrees, 200)
    x = torch.randn(200, 72, generator=torch.Generator().manual_seed(1))
    weights = torch.rand(columns.numel()) + 0.1
    actual = []
    for seed, shape in enumerate(
        [(128, 8 * 8 + 4), (128, 8 * 8 + 4), (64, 8 + 1), (64, 2 * 8 + 7)]
    ):
        kernels.seed(ctypes.c_uint64(seed))
        actual.append(row_sums(kernels, (kernel, *shape), indptr, columns, x, "sum", weights))
    matrix = DrawnBlock(indptr, columns, 200).matrix("sum", weights)
    assert_within(actual[0], matrix @ x.double(), matrix @ x.double().abs(), max(degrees))
    for other in actual[1:]:
        assert torch.equal(actual[0], other)


def test_pieces_grow_with_the_number_of_edges(kernels):
    """At most 16384 pieces of 128 edges; with more edges, pieces have 256."""
    edges = 8192 * 128 + 300
    indptr = torch.tensor([0, 256, 513, edges - 1, edges], dtype=torch.int32)
    ones = torch.ones(1, 1, dtype=torch.float64)
    columns = torch.zeros(edges, dtype=torch.int32)
    out = row_sums(kernels, (WARP_TRANSPOSED, 128, 68), indptr, columns, ones, "sum")
    assert out[:, 0].tolist() == [256, 257, edges - 514, 1]


@pytest.mark.parametrize(
    "dtype, dim", [(torch.float32, 33), (torch.float64, 6), (torch.float16, 30)]
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("weighted", [False, True])
def test_scatter_of_memory_aware_equals_matrix_products(kernels, weighted, mode, dtype, dim):
    """Gradients added to the sources' rows; sums in the wider dtype."""
    draws = torch.Generator().manual_seed(dim)
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, dim, hub)
        edges = block.indices.numel()
        grad = torch.randn(num_dst, dim, generator=draws).to(dtype)
        weights = totals = None
        if weighted:
            weights = (torch.rand(edges, generator=draws) + 0.1).to(sum_dtype(dtype))
            totals = row_sums(kernels, (TUNED, 4, 0), block.indptr, None, weights[:, None], "sum")
        for targets, dims in ((8, 32), (2, 128), (5, 4)):
            out = torch.full((num_src, dim), float("nan"), dtype=sum_dtype(dtype))
            kernels.row_sums_of(
                *c_args((
                    c_int(SCATTER), c_int(DTYPES[dtype]), block.indptr, block.indices, num_dst,
                    edges, num_src, dim, grad, out, c_int(MODES[mode]), weights, 1, None, None,
                    totals, 0, c_int(targets), c_int(dims),
                ))
            )  # fmt: skip
            matrix = block.matrix(mode, weights).T
            assert_within(out, matrix @ grad.double(), matrix @ grad.double().abs(), 1000)
