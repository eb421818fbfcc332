"""The CUDA kernels of the aggregation on the host, thread by thread (native/tests/cuda_on_host).

Compares their results with dense float64 matrices, within error bounds of the sums. Needs g++ and
the CUDA toolkit's headers. Speed, memory races and registers can be tested on a GPU only.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from drawn_blocks import DrawnBlock, assert_within, drawn_block, sum_dtype
from hypothesis import HealthCheck, given, settings
from sums_on_host import (
    DTYPES,
    MEMORY_AWARE,
    MODES,
    SHAPES,
    SIMPLE,
    SPREAD,
    TUNED,
    WARPS,
    c_args,
    c_int,
    check_sums_of_rows,
    load_kernels,
    row_sums,
    rows_of,
    stable_transpose,
)
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.reference import aggregate as reference


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load_kernels()


def transpose(kernels: Any, indptr: Tensor, indices: Tensor, num_src: int) -> list[Tensor]:
    actual = [torch.full((n,), -7, dtype=torch.int32) for n in (num_src + 1, *[len(indices)] * 2)]
    kernels.transpose_of(
        *c_args((indptr, indices, indices.numel(), num_src, indptr.numel() - 1, *actual))
    )
    return actual


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_matrices_equal_the_reference(mode, weighted):
    block = drawn_block(30, 40, 5, seed=2, hub=60)
    weights = torch.rand(block.indices.numel()) + 0.1 if weighted else None
    nodes = torch.arange(40, dtype=torch.int32)
    expected = reference.matrix(Block(block.indptr, block.indices, nodes, 30), mode, weights)
    assert torch.allclose(block.matrix(mode, weights), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 0, 0), (5, 9, 3, 0), (60, 90, 7, 300), (300, 400, 9, 0), (40, 50, 3, 5000),
     (20, 30, 600, 9000)],
)  # fmt: skip
def test_transpose_is_a_stable_sort(kernels, shape):
    """Rows sorted by one thread, rows that fit into shared memory, and longer rows."""
    block = drawn_block(*shape[:3], seed=1, hub=shape[3])
    indptr, indices = block.indptr, block.indices
    exact = stable_transpose(block)
    for seed in range(1 if indices.numel() > 2000 else 3):  # seeds of the order of threads
        kernels.seed(ctypes.c_uint64(seed))
        actual = transpose(kernels, indptr, indices, shape[1])
        for a, b in zip(actual, exact, strict=True):
            assert torch.equal(a, b)


def test_transpose_by_hand(kernels):
    indptr = torch.tensor([0, 3, 3, 5], dtype=torch.int32)
    indices = torch.tensor([2, 0, 2, 2, 0], dtype=torch.int32)
    offsets, dst, edge = transpose(kernels, indptr, indices, 4)
    assert offsets.tolist() == [0, 2, 2, 5, 5]
    assert dst.tolist() == [0, 2, 0, 0, 2]
    assert edge.tolist() == [1, 4, 0, 2, 3]


KERNELS = [(SIMPLE, 0, 0), (TUNED, 4, 0), (TUNED, 7, 0), SPREAD, (MEMORY_AWARE, 8, 32),
           (MEMORY_AWARE, 3, 8), (MEMORY_AWARE, 2, 128), *WARPS]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(
    "dtype, dim",
    [(torch.float32, 1), (torch.float32, 30), (torch.float32, 33), (torch.float32, 264),
     (torch.float64, 6), (torch.float64, 130), (torch.float16, 30), (torch.float16, 264),
     (torch.bfloat16, 33)],
)  # fmt: skip
def test_sums_of_rows_equal_matrix_products(kernels, kernel, dtype, dim):
    """Forward and backward, by mode, with and without weights; a row of 400 edges."""
    draws = torch.Generator().manual_seed(dim)
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, dim, hub)
        x, grad = (torch.randn(n, dim, generator=draws).to(dtype) for n in (num_src, num_dst))
        weights = torch.rand(block.indices.numel(), generator=draws) + 0.1
        weights = weights.to(sum_dtype(dtype))
        for mode in MODES:
            for w in (None, weights):
                check_sums_of_rows(kernels, kernel, block, x, grad, mode, w)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kernel=st.sampled_from([(TUNED, 1, 0), (TUNED, 4, 0), (TUNED, 7, 0), SPREAD,
                            (MEMORY_AWARE, 8, 32), *WARPS]),
    num_dst=st.integers(1, 40), more=st.integers(0, 40), top=st.integers(0, 20),
    hub=st.sampled_from([0, 0, 65, 129, 300]), dim=st.integers(1, 1025),
    dtype=st.sampled_from(list(DTYPES)), mode=st.sampled_from(list(MODES)),
    weighted=st.booleans(), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_sums_of_random_rows_equal_matrix_products(
    kernels, kernel, num_dst, more, top, hub, dim, dtype, mode, weighted, seed
):
    kernels.seed(ctypes.c_uint64(seed))
    num_src = num_dst + more
    block = drawn_block(num_dst, num_src, top, seed, hub)
    draws = torch.Generator().manual_seed(seed)
    x, grad = (torch.randn(n, dim, generator=draws).to(dtype) for n in (num_src, num_dst))
    weights = None
    if weighted:
        weights = torch.rand(block.indices.numel(), generator=draws) + 0.1
        weights = weights.to(sum_dtype(dtype))
    check_sums_of_rows(kernels, kernel, block, x, grad, mode, weights)


# Rows about as long as a chunk, empty rows between them, and a row whose parts one block adds.
LONG = [64, 65, 0, 63, 128, 129, 0, 0, 127, 1, 192, 2049, 0, 3200, 64, 66, 0]
SHORT = [0, 1, 1, 0, 0, 0, 2, 1, 9, 0, 40]


@pytest.mark.parametrize(
    "degrees",
    [LONG, LONG[::-1], SHORT * 9, [*SHORT * 3, 300, *SHORT * 3, 65, 66], [5000], [0, 0, 700, 0],
     [64, 3, 0], [65], [0] * 200],
)  # fmt: skip
@pytest.mark.parametrize("dtype, dim", [(torch.float32, 3), (torch.float16, 8)])
def test_rows_of_every_length_do_not_depend_on_the_schedule(kernels, degrees, dtype, dim):
    """Every schedule gives identical bits."""
    indptr, columns = rows_of(degrees, 200)
    draws = torch.Generator().manual_seed(dim)
    x = torch.randn(200, dim, generator=draws).to(dtype)
    weights = torch.rand(columns.numel(), generator=draws) + 0.1
    block = DrawnBlock(indptr, columns, 200)
    for w in (None, weights):
        actual = []
        for seed in range(2):
            kernels.seed(ctypes.c_uint64(seed))
            actual.append(row_sums(kernels, SPREAD, indptr, columns, x, "sum", w))
        assert torch.equal(*actual)
        matrix = block.matrix("sum", w)
        assert_within(actual[0], matrix @ x.double(), matrix @ x.double().abs(), max(degrees))


def test_long_row_at_every_position(kernels):
    """A long row after 0 to 130 rows of one edge; all values are 1, so sums are lengths."""
    ones = torch.ones(1, 1)
    for before in range(131):
        degrees = [1] * before + [130, 2]
        indptr, columns = rows_of(degrees, 1)
        assert row_sums(kernels, SPREAD, indptr, columns, ones, "sum")[:, 0].tolist() == degrees


def test_edges_outside_all_rows_are_ignored(kernels):
    """Edges before the first row and after the last row."""
    indptr = torch.tensor([10, 10, 200, 265, 329, 2500], dtype=torch.int32)
    columns = torch.zeros(2700, dtype=torch.int32)
    ones, out = torch.ones(1, 1), torch.full((5, 1), float("nan"))
    kernels.row_sums_of(
        *c_args((
            c_int(SPREAD[0]), c_int(0), indptr, columns, 5, 2700, 1, 1, ones, out,
            c_int(MODES["sum"]), None, 1, None, None, None, 0, c_int(0), c_int(0),
        ))
    )  # fmt: skip
    assert out[:, 0].tolist() == [0, 190, 65, 64, 2171]


def test_short_rows_are_identical_to_the_tuned_kernel(kernels):
    indptr, columns = rows_of([30, 0, 29, 0, 0] * 4, 30)  # no row is split: chunks have 32 items
    x = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    actual = [row_sums(kernels, k, indptr, columns, x, "sum") for k in ((TUNED, 4, 0), SPREAD)]
    assert torch.equal(*actual)


def test_chunks_grow_with_the_number_of_edges(kernels):
    """At most 16384 chunks of 128 edges; with more edges, chunks have 256."""
    edges = 16384 * 128 + 300
    indptr = torch.tensor([0, 256, 513, edges - 1, edges], dtype=torch.int32)
    ones = torch.ones(1, 1, dtype=torch.float64)
    out = row_sums(kernels, SPREAD, indptr, torch.zeros(edges, dtype=torch.int32), ones, "sum")
    assert out[:, 0].tolist() == [256, 257, edges - 514, 1]


@pytest.mark.parametrize(
    "kernel",
    [(TUNED, 4, 0), SPREAD, (MEMORY_AWARE, 8, 32), (MEMORY_AWARE, 2, 64), *WARPS],
    ids=str,
)
@pytest.mark.parametrize(
    "heads, width", [(8, 8), (3, 5), (2, 64), (4, 1), (2, 6), (5, 40), (130, 1)]
)
def test_sums_of_heads_equal_matrix_products(kernels, kernel, heads, width):
    draws = torch.Generator().manual_seed(width)
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, width, hub)
        indptr, indices = block.indptr, block.indices
        back = stable_transpose(block)
        x = torch.randn(num_src, heads * width, generator=draws)
        grad = torch.randn(num_dst, heads * width, generator=draws)
        weights = torch.randn(indices.numel(), heads, generator=draws)
        forward = row_sums(kernels, kernel, indptr, indices, x, "sum", weights, heads)
        backward = row_sums(
            kernels, kernel, back[0], back[1], grad, "sum", weights, heads, edges=back[2]
        )
        for head in range(heads):
            own = slice(head * width, (head + 1) * width)
            matrix = block.matrix("sum", weights[:, head])
            sizes = block.matrix("sum", weights[:, head].abs())
            z, g = x[:, own].double(), grad[:, own].double()
            assert_within(forward[:, own], matrix @ z, sizes @ z.abs(), 500)
            assert_within(backward[:, own], matrix.T @ g, sizes.T @ g.abs(), 500)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads, width", [(1, 1), (8, 8), (3, 5), (2, 64), (1, 300)])
def test_edge_dots_equal_sums_of_products(kernels, dtype, heads, width):
    draws = torch.Generator().manual_seed(width)
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, width, hub)
        indptr, indices = block.indptr, block.indices
        rows = torch.randn(num_dst, heads, width, generator=draws).to(dtype)
        x = torch.randn(num_src, heads, width, generator=draws).to(dtype)
        sums = sum_dtype(dtype)
        out = torch.full((indices.numel(), heads), float("nan"), dtype=sums)
        kernels.edge_dots_of(
            *c_args((
                c_int(DTYPES[dtype]), indptr, indices, rows, x, indices.numel(), num_src, num_dst,
                heads, width, out,
            ))
        )  # fmt: skip
        products = rows.double()[block.rows] * x.double()[indices.long()]
        assert_within(out, products.sum(2), products.abs().sum(2), width)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_edge_operators_equal_torch(kernels, dtype, heads):
    """Sums of both ends, softmax over rows and its gradient, and a row of 400 edges."""
    draws = torch.Generator().manual_seed(heads)
    kind = c_int(DTYPES[dtype])
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, heads, hub)
        indptr, indices = block.indptr, block.indices
        rows, edges = block.rows, indices.numel()
        src, dst = (torch.randn(n, heads, generator=draws).to(dtype) for n in (num_src, num_dst))
        scores = torch.full((edges, heads), float("nan"), dtype=dtype)
        kernels.edge_add_of(
            *c_args((kind, indptr, indices, src, dst, edges, num_src, num_dst, heads, scores))
        )
        assert torch.equal(scores, src[indices.long()] + dst[rows])
        soft = torch.full_like(scores, float("nan"))
        kernels.edge_softmax_of(*c_args((kind, indptr, scores, None, edges, num_dst, heads, soft)))
        exact = scores.double()
        for row in range(num_dst):
            exact[rows == row] = exact[rows == row].softmax(0)
        assert_within(soft, exact, exact, 500)
        grad = torch.randn(edges, heads, generator=draws).to(dtype)
        back = torch.full_like(scores, float("nan"))
        kernels.edge_softmax_of(*c_args((kind, indptr, soft, grad, edges, num_dst, heads, back)))
        s, g = soft.double(), grad.double()
        sums = torch.zeros(num_dst, heads, dtype=torch.float64).index_add_(0, rows, s * g)
        sizes = torch.zeros_like(sums).index_add_(0, rows, s * g.abs())
        assert_within(back, s * (g - sums[rows]), s * (g.abs() + sizes[rows]), 500)


@pytest.mark.parametrize("dim, workers", [(1, 32), (30, 32), (33, 7), (1100, 32)])
@pytest.mark.parametrize("group", [1, 4, 32, 100])
def test_sums_of_groups_equal_matrix_products(kernels, dim, workers, group):
    for num_dst, num_src, top, hub in SHAPES:
        block = drawn_block(num_dst, num_src, top, dim, hub)
        indptr, indices = block.indptr, block.indices
        edges = indices.numel()
        starts, rows = (torch.full((edges + 1,), -7, dtype=torch.int32) for _ in range(2))
        count = kernels.groups_of(*c_args((indptr, num_dst, group, starts, rows)))
        begun = [range(a, b, group) for a, b in itertools.pairwise(indptr)]
        assert starts[: count + 1].tolist() == [*(e for r in begun for e in r), edges]
        assert rows[:count].tolist() == [v for v, r in enumerate(begun) for _ in r]
        x = torch.randn(num_src, dim, generator=torch.Generator().manual_seed(dim))
        out = torch.full((num_dst, dim), float("nan"))
        kernels.sum_groups_of(
            *c_args((
                c_int(0), starts, rows, count, indices, edges, x, num_src, dim, num_dst,
                c_int(workers), out,
            ))
        )  # fmt: skip
        matrix = block.matrix("sum", None)
        assert_within(out, matrix @ x.double(), matrix @ x.double().abs(), 500)
