"""Aggregation: hand-computed values, the reference, gradients, determinism, bad arguments."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from ops_blocks import assert_sums, block_of, random_block
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels import aggregate as ops
from gnnbench.kernels.reference import aggregate as reference

MODES = ("sum", "mean", "gcn")


# destination 0 <- 2 3, 1 isolated, 2 <- 2 (itself) 0 0 (parallel)
SMALL = block_of([[2, 3], [], [2, 0, 0]], 4)
X = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
EXPECTED = {
    "sum": [[7.0, 70.0], [0.0, 0.0], [5.0, 50.0]],
    "mean": [[3.5, 35.0], [0.0, 0.0], [5 / 3, 50 / 3]],
    "gcn": [[8 / 3, 80 / 3], [2.0, 20.0], [2.0, 20.0]],
}
# gradient of out.sum(): the total weight of each source
EXPECTED_GRAD = {
    "sum": [2.0, 0.0, 2.0, 1.0],
    "mean": [2 / 3, 0.0, 1 / 2 + 1 / 3, 1 / 2],
    "gcn": [1 / 3 + 2 / 4, 1.0, 1 / 3 + 2 / 4, 1 / 3],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_by_hand(mode: str, dtype: torch.dtype) -> None:
    x = X.clone().to(dtype).requires_grad_()
    expected = torch.tensor(EXPECTED[mode], dtype=dtype)
    out = ops.aggregate(SMALL, x, mode)
    assert out.dtype == dtype
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(reference.aggregate(SMALL, X, mode).to(dtype), expected)
    out.sum().backward()
    grad = torch.tensor(EXPECTED_GRAD[mode], dtype=dtype)[:, None].expand(4, 2)
    torch.testing.assert_close(x.grad, grad)


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# Every code path: less than a vector, overlapping last vectors, several at once, several passes.
WIDTHS = [0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 47, 64, 100, 127, 128, 173, 256, 300, 602, 1025]


def compare(block: Block, dim: int, dtype: torch.dtype, mode: str, weighted: bool) -> None:
    """Compares values and gradients with a dense float64 matrix, within error bounds."""
    x = torch.randn(block.num_src, dim).to(dtype)
    grad = torch.randn(block.num_dst, dim).to(dtype)
    weights = torch.rand(block.num_edges).add(0.5).to(ops.sum_dtype(x)) if weighted else None
    matrix = reference.matrix(block, mode, weights)
    ours = x.clone().requires_grad_()
    out = ops.aggregate(block, ours, mode, weights)
    out.backward(grad)
    assert out.dtype == dtype and ours.grad is not None and ours.grad.dtype == dtype
    most = int(block.indptr.diff().max()) if block.num_dst else 0
    # Roundings: terms, own row, weight, sum of weights, division and product.
    assert_sums(out, matrix @ x.double(), matrix @ x.double().abs(), 2 * most + 8)
    uses = int(torch.bincount(block.indices, minlength=1).max()) if block.num_edges else 0
    exact, sizes = matrix.t() @ grad.double(), matrix.t() @ grad.double().abs()
    assert_sums(ours.grad, exact, sizes, uses + most + 8)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30)
@given(
    num_dst=st.integers(0, 30),
    more=st.integers(0, 40),
    edges=st.integers(0, 200),
    dim=st.sampled_from(WIDTHS),
    dtype=st.sampled_from(DTYPES),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_random_blocks_equal_the_reference(
    mode: str, num_dst: int, more: int, edges: int, dim: int, dtype: torch.dtype, weighted: bool,
    seed: int,
) -> None:  # fmt: skip
    torch.manual_seed(seed)
    block = random_block(num_dst, num_dst + max(more, 1), edges, seed)
    compare(block, dim, dtype, mode, weighted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", WIDTHS)
def test_every_width_equals_the_reference(dim: int, dtype: torch.dtype) -> None:
    torch.manual_seed(dim)
    block = random_block(9, 20, 60, dim)
    for number, mode in enumerate(MODES):
        compare(block, dim, dtype, mode, weighted=(number + dim) % 2 == 1)


@pytest.mark.parametrize(
    ("mode", "dim", "dtype"),
    [
        (MODES[(d + t) % len(MODES)], dim, dtype)
        for d, dim in enumerate([1, 40, 256])
        for t, dtype in enumerate(DTYPES)
    ],
)
def test_long_row_among_empty_rows_equals_the_reference(
    mode: str, dim: int, dtype: torch.dtype
) -> None:
    """Destination 1 has edges 0 to 19,999, most of them from source 2."""
    torch.manual_seed(dim)
    sources = torch.randint(0, 50, (20_000,))
    sources[torch.rand(20_000) < 0.8] = 2
    block = block_of([[], sources.tolist(), [], [2]], 50)
    for weighted in (False, True):
        compare(block, dim, dtype, mode, weighted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [1, 5, 36])
def test_gradients_agree_with_finite_differences(mode: str, dim: int) -> None:
    block = random_block(7, 12, 25, 3)
    x = torch.randn(12, dim, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: ops.aggregate(block, t, mode), (x,))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [1, 5, 36])
def test_gradients_of_weights_agree_with_finite_differences(mode: str, dim: int) -> None:
    block = random_block(7, 12, 25, 3)
    x = torch.randn(12, dim, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(25, dtype=torch.float64).add(0.5).requires_grad_()
    assert torch.autograd.gradcheck(lambda t, w: ops.aggregate(block, t, mode, w), (x, weights))
    assert torch.autograd.gradcheck(lambda w: ops.aggregate(block, x.detach(), mode, w), (weights,))


# Weights of SMALL's edges 2 3 | | 2 0 0; the gradients of its destinations are 1, 10 and 100.
WEIGHTS = torch.tensor([2.0, 4.0, 1.0, 3.0, 1.0])
WEIGHTED = {
    "sum": [2 * 3.0 + 4 * 4, 0, 3 + 4 * 1],
    "mean": [22 / 6, 0, 7 / 5],
    "gcn": [(22 + 1) / 7, 2, (7 + 3) / 6],
}
WEIGHTED_GRAD = {
    "sum": [400, 0, 2 + 100, 4],
    "mean": [400 / 5, 0, 2 / 6 + 100 / 5, 4 / 6],
    "gcn": [1 / 7 + 400 / 6, 10, 2 / 7 + 100 / 6 + 100 / 6, 4 / 7],
}
# d out_v / d w_uv: x_u for sum; (x_u - out_v) / (sum of weights) for mean, (... + 1) for gcn
OF_WEIGHTS = {
    "sum": [3, 4, 300, 100, 100],
    "mean": [(3 - 22 / 6) / 6, (4 - 22 / 6) / 6, *(100 * (x - 7 / 5) / 5 for x in (3, 1, 1))],
    "gcn": [(3 - 23 / 7) / 7, (4 - 23 / 7) / 7, *(100 * (x - 10 / 6) / 6 for x in (3, 1, 1))],
}


@pytest.mark.parametrize("mode", MODES)
def test_weights_by_hand(mode: str) -> None:
    x = X[:, :1].clone().requires_grad_()
    weights = WEIGHTS.clone().requires_grad_()
    out = ops.aggregate(SMALL, x, mode, weights)
    torch.testing.assert_close(out[:, 0], torch.tensor(WEIGHTED[mode]).float())
    out.backward(torch.tensor([[1.0], [10.0], [100.0]]))
    assert x.grad is not None
    torch.testing.assert_close(x.grad[:, 0], torch.tensor(WEIGHTED_GRAD[mode]).float())
    torch.testing.assert_close(weights.grad, torch.tensor(OF_WEIGHTS[mode]).float())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("mode", "dim"), [("sum", 5), ("mean", 50), ("gcn", 256)])
def test_results_are_identical_for_any_number_of_threads(
    mode: str, dim: int, weighted: bool
) -> None:
    torch.manual_seed(dim)
    x, grad = torch.randn(9000, dim), torch.randn(3000, dim)
    values = torch.rand(60_000) if weighted else None
    results = []
    for n in (1, 2, 5):
        block = random_block(3000, 9000, 60_000, 1)  # with a new transpose
        leaf = x.clone().requires_grad_()
        weights = None if values is None else values.clone().requires_grad_()
        with threads(n):
            out = ops.aggregate(block, leaf, mode, weights)
            out.backward(grad)
        results.append([out.detach(), leaf.grad, *([] if weights is None else [weights.grad])])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, results[0], strict=True))


def test_gradient_may_be_non_contiguous() -> None:
    x = X.clone().requires_grad_()
    ops.aggregate(SMALL, x, "sum").sum().backward()  # an expanded scalar
    y = X.t().contiguous().t().clone().requires_grad_()
    ops.aggregate(SMALL, y, "sum").backward(torch.ones(2, 3).t())
    assert x.grad is not None
    assert y.grad is not None
    assert torch.equal(x.grad, y.grad)


@pytest.mark.parametrize(
    ("block", "x", "mode", "message"),
    [
        (SMALL, X, "max", "mode must be 'sum', 'mean' or 'gcn', not 'max'"),
        (SMALL, X.int(), "sum", "x must be float16, bfloat16, float32 or float64, it is int32"),
        (SMALL, X[:, 0], "sum", "x must have 2 dimension"),
        (SMALL, X[:3], "sum", "indices holds 3 at position 1"),
        (SMALL, X[:2], "sum", "a block of 3 destinations needs at least as many sources"),
        (
            Block(torch.tensor([0, 2, 1]).int(), SMALL.indices[:1], torch.arange(4), 2),
            X,
            "sum",
            "indptr must start at 0, never decrease",
        ),
        (
            Block(torch.tensor([0, 2]).int(), SMALL.indices, torch.arange(4), 1),
            X,
            "sum",
            "end at the number of edges",
        ),
        (
            Block(torch.tensor([0, 2]).int(), SMALL.indices[:2], torch.arange(4), 2),
            X,
            "sum",
            "indptr must hold num_dst \\+ 1 = 3 offsets, it holds 2",
        ),
        (
            Block(torch.tensor([0, 2]), SMALL.indices[:2], torch.arange(4), 1),
            X,
            "sum",
            "indptr must be int32, it is int64",
        ),
        (
            Block(torch.tensor([0, 1]).int(), torch.tensor([-1]).int(), torch.arange(4), 1),
            X,
            "mean",
            "indices holds -1 at position 0",
        ),
    ],
)
def test_bad_arguments_are_refused(block: Block, x: torch.Tensor, mode: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ops.aggregate(block, x, mode)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_rounded_as_in_torch(dtype: torch.dtype) -> None:
    every = torch.arange(-(2**15), 2**15).short().view(dtype)
    one = block_of([[0]], 1)
    for width in (2**16, 8):  # as whole vectors and as single values
        x = every.view(-1, width)
        got = torch.cat([ops.aggregate(one, row[None], "sum") for row in x[:4096]])
        torch.testing.assert_close(got, x[:4096], rtol=0, atol=0, equal_nan=True)
    # A sum in float32 rounded once: torch's conversion of the same sum.
    pairs = torch.randint(-(2**15), 2**15, (2, 200_000)).short().view(dtype)
    pairs[1, :100_000] *= 2**-8
    got = ops.aggregate(block_of([[0, 1]], 2), pairs, "sum")
    expected = (pairs[0].float() + pairs[1].float()).to(dtype)
    torch.testing.assert_close(got[0], expected, rtol=0, atol=0, equal_nan=True)
