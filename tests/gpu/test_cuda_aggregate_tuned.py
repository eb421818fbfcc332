"""Sums of rows on the GPU by every kernel, forward and backward, and their transpose."""

import pytest
import torch
from drawn_blocks import assert_within, drawn_block, sum_dtype
from gpu_graphs import assert_same

pytestmark = pytest.mark.gpu

MODES = ["sum", "mean", "gcn"]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 40, 64, 100, 127, 128, 129, 130, 255, 256, 257, 260,
          301, 512, 602, 1023, 1024, 1025]  # fmt: skip


@pytest.mark.parametrize("num_src", [1, 300, 100_000])
@pytest.mark.parametrize("top, hub", [(0, 0), (3, 0), (9, 200), (5, 4096), (5, 4097), (3, 50_000)])
def test_transpose_is_a_stable_sort(ops, num_src, top, hub):
    """Rows that a thread sorts, rows that fit into shared memory, and longer rows."""
    block = drawn_block(min(700, num_src), num_src, top, seed=num_src + hub, hub=hub, device="cuda")
    offsets, dst, edge = ops.transpose(block.indptr, block.indices, num_src)
    right = torch.argsort(block.indices, stable=True)
    counts = torch.bincount(block.indices, minlength=num_src)
    assert_same(offsets[1:], counts.cumsum(0).int().cpu())
    assert int(offsets[0]) == 0
    assert_same(edge, right.int().cpu())
    assert_same(dst, block.rows[right].int().cpu())


def test_transpose_of_many_long_rows(ops):
    block = drawn_block(40_000, 40_000, 9, seed=3, device="cuda")
    block.indices %= 900  # about two hundred edges each
    first = ops.transpose(block.indptr, block.indices, 40_000)
    assert_same(first[2], torch.argsort(block.indices, stable=True).int().cpu())
    for _ in range(5):
        assert_same(ops.transpose(block.indptr, block.indices, 40_000), [t.cpu() for t in first])


def forward(ops, kernel, block, x, mode, weights):
    args = (block.indptr, block.indices, x, block.num_dst, mode, weights)
    if kernel == "simple":
        return ops.aggregate(*args)
    if kernel == "tuned":
        return ops.aggregate_tuned(*args)
    if kernel[0] == "warp":
        return ops.aggregate_memory_aware_warp(*args, *kernel[1:])
    return ops.aggregate_memory_aware(*args, *kernel)


def backward(ops, kernel, block, back, grad, mode, weights):
    args = (block.indptr, *back, grad, mode, weights)
    if kernel[0] == "warp":
        return ops.aggregate_memory_aware_warp_transposed(*args, *kernel[1:])
    if isinstance(kernel, tuple):
        return ops.aggregate_memory_aware_transposed(*args, *kernel)
    return ops.aggregate_transposed(*args)


def check(ops, kernel, block, dim, dtype, weighted):
    draws = torch.Generator("cuda").manual_seed(dim)

    def random(*shape):
        return torch.randn(*shape, generator=draws, device="cuda")

    x, grad = (random(n, dim).to(dtype) for n in (block.num_src, block.num_dst))
    weights = None
    if weighted:
        weights = torch.rand(block.indices.numel(), generator=draws, device="cuda") + 0.1
        weights = weights.to(sum_dtype(dtype))
    back = ops.transpose(block.indptr, block.indices, block.num_src)
    longest = int(block.indptr.diff().max())
    for mode in MODES:
        matrix = block.matrix(mode, weights)
        out = forward(ops, kernel, block, x, mode, weights)
        assert out.dtype == dtype
        assert_within(out, matrix @ x.double(), matrix @ x.double().abs(), longest)
        again = forward(ops, kernel, block, x, mode, weights)
        assert torch.equal(out, again)
        out = backward(ops, kernel, block, back, grad, mode, weights)
        terms = longest + int(back[0].diff().max())
        assert_within(out, matrix.T @ grad.double(), matrix.T @ grad.double().abs(), terms)
        assert torch.equal(out, backward(ops, kernel, block, back, grad, mode, weights))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", WIDTHS)
def test_tuned_kernel(ops, dim, dtype, weighted):
    check(ops, "tuned", drawn_block(700, 1500, 11, seed=dim, device="cuda"), dim, dtype, weighted)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", WIDTHS)
def test_memory_aware_by_warps(ops, dim, dtype, weighted):
    block = drawn_block(700, 1500, 11, seed=dim, device="cuda")
    check(ops, ("warp", 8, 128, 4), block, dim, dtype, weighted)


@pytest.mark.parametrize(
    "kernel",
    ["simple", (8, 32), (32, 8), (1, 32), (4, 128), ("warp", 1, 64, 7), ("warp", 2, 128, 1)],
    ids=str,
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [1, 30, 64, 129, 602])
def test_simple_and_memory_aware_kernels(ops, kernel, dim, dtype):
    for weighted in (False, True):
        check(ops, kernel, drawn_block(300, 700, 11, seed=dim, device="cuda"), dim, dtype, weighted)


@pytest.mark.parametrize("kernel", ["simple", "tuned", (8, 32), ("warp", 8, 128, 4)], ids=str)
@pytest.mark.parametrize("hub", [128, 129, 1000, 30_000])
@pytest.mark.parametrize("dim", [1, 64, 130, 256])
def test_long_row(ops, kernel, hub, dim):
    check(
        ops,
        kernel,
        drawn_block(50, 200, 5, seed=hub, hub=hub, device="cuda"),
        dim,
        torch.float32,
        True,
    )


@pytest.mark.parametrize("rows", range(1, 8))
def test_results_do_not_depend_on_rows_per_group(ops, rows):
    """With enough rows to fill groups, and with few rows."""
    for num_dst in (50, 300_000):
        block = drawn_block(num_dst, num_dst + 100, 9, seed=1, hub=1000, device="cuda")
        x = torch.randn(block.num_src, 64, device="cuda")
        args = (block.indptr, block.indices, x, block.num_dst, "mean")
        assert torch.equal(ops.aggregate_tuned(*args, None, rows), ops.aggregate_tuned(*args))


@pytest.mark.parametrize("hub", [0, 500, 30_000])
@pytest.mark.parametrize("dim", [3, 64, 100, 300])
def test_results_by_warps_do_not_depend_on_the_shape(ops, dim, hub):
    """With rows that the teams of a block share, and pieces in a list of any order."""
    for num_dst in (50, 100_000):
        block = drawn_block(num_dst, num_dst + 100, 9, seed=1, hub=hub, device="cuda")
        back = ops.transpose(block.indptr, block.indices, block.num_src)
        x, grad = (torch.randn(n, dim, device="cuda") for n in (block.num_src, num_dst))
        weights = torch.rand(block.indices.numel(), device="cuda") + 0.1
        out, right = (
            [
                forward(ops, kernel, block, x, "mean", weights),
                backward(ops, kernel, block, back, grad, "mean", weights),
            ]
            for kernel in (("warp", 2, 64, 7), ("warp", 8, 128, 4))
        )
        assert torch.equal(out[0], right[0]) and torch.equal(out[1], right[1])
        if hub == 0:  # a row is summed in the order of its edges, as by tuned
            rows = [
                forward(ops, one, block, x, "sum", weights) for one in (("warp", 2, 64, 7), "tuned")
            ]
            torch.testing.assert_close(rows[0], rows[1])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [1, 30, 129])
@pytest.mark.parametrize("shape", [(8, 32), (32, 8), (2, 128)])
def test_scatter_of_memory_aware(ops, shape, dim, dtype, weighted):
    """Sums in the wider dtype."""
    block = drawn_block(300, 700, 11, seed=dim, hub=1000, device="cuda")
    draws = torch.Generator("cuda").manual_seed(dim)
    grad = torch.randn(300, dim, generator=draws, device="cuda").to(dtype)
    weights = None
    if weighted:
        weights = torch.rand(block.indices.numel(), generator=draws, device="cuda") + 0.1
        weights = weights.to(sum_dtype(dtype))
    for mode in MODES:
        out = ops.aggregate_memory_aware_scattered(
            block.indptr, block.indices, grad, 700, mode, weights, *shape
        )
        assert out.dtype == sum_dtype(dtype)
        matrix = block.matrix(mode, weights).T
        assert_within(out, matrix @ grad.double(), matrix @ grad.double().abs(), 2000)


def test_rows_ignore_data_of_the_next_row(ops):
    """The window of a row also loads data of the next row, which is NaN and infinite here."""
    indptr = torch.tensor([0, 3, 6, 6, 7], dtype=torch.int32, device="cuda")
    indices = torch.tensor([1, 2, 3, 4, 4, 4, 0], dtype=torch.int32, device="cuda")
    x = torch.ones(5, 8, device="cuda")
    x[4] = torch.nan
    weights = torch.tensor([1.0, 2, 3, torch.inf, torch.nan, 1, 5], device="cuda")
    for given, right in ((None, [3, 0, 1]), (weights, [6, 0, 5])):
        for sum_of in (ops.aggregate_tuned, ops.aggregate_memory_aware_warp):
            out = sum_of(indptr, indices, x, 4, "sum", given)
            assert out[[0, 2, 3], 0].tolist() == right
            assert bool(out[1].isnan().all())


def test_unaligned_rows(ops):
    """Unaligned storage uses narrower loads."""
    block = drawn_block(300, 700, 11, seed=1, device="cuda")
    for dtype in DTYPES:
        for skipped in (1, 2, 4):
            flat = torch.randn(700 * 64 + 8, device="cuda").to(dtype)
            x = flat[skipped : skipped + 700 * 64].view(700, 64)
            for sum_of in (ops.aggregate_tuned, ops.aggregate_memory_aware_warp):
                out = sum_of(block.indptr, block.indices, x, 300, "sum")
                aligned = sum_of(block.indptr, block.indices, x.clone(), 300, "sum")
                assert torch.equal(out, aligned)


def test_bad_arguments(ops):
    block = drawn_block(5, 9, 3, seed=1, device="cuda")
    x = torch.ones(9, 4, device="cuda")
    args = (block.indptr, block.indices, x, 5, "sum")
    for rows in (0, 8):
        with pytest.raises(RuntimeError, match="rows must be 1 to 7"):
            ops.aggregate_tuned(*args, None, rows)
    with pytest.raises(RuntimeError, match="targets times dims must be 1 to 1024"):
        ops.aggregate_memory_aware(*args, None, 33, 32)
    with pytest.raises(RuntimeError, match="dims must be a power of two, it is 24"):
        ops.aggregate_memory_aware(*args, None, 8, 24)
    for wrong, message in (
        ((9, 128, 4), "warps must be 1 to 8, it is 9"), ((8, 96, 4), "columns must be 64 or 128"),
        ((8, 128, 0), "rows must be 1 to 7"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            ops.aggregate_memory_aware_warp(*args, None, *wrong)
    with pytest.raises(RuntimeError, match="bytes of shared memory"):
        ops.aggregate_memory_aware(*args, None, 1024, 1)
    with pytest.raises(RuntimeError, match="weights must be float32"):
        ops.aggregate_tuned(*args, torch.ones(block.indices.numel(), device="cuda").double())
    with pytest.raises(RuntimeError, match="indptr has no row, yet there are edges"):
        ops.transpose(block.indptr[:1], torch.zeros(1, dtype=torch.int32, device="cuda"), 3)
