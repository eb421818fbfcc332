"""Aggregation with the methods of other systems: values, gradients and refused arguments."""

from functools import partial

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from ops_blocks import block_of, random_block
from ops_threads import threads

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.kernels.aggregate_groups import aggregate_groups
from gnnbench.kernels.aggregate_scatter import aggregate_scatter
from gnnbench.kernels.aggregate_spmm import aggregate_spmm
from gnnbench.kernels.library import load_native
from gnnbench.kernels.reference import aggregate as reference

MODES = ("sum", "mean", "gcn")
METHODS = {
    "spmm": aggregate_spmm,
    "scatter": aggregate_scatter,
    "gnnadvisor": aggregate_groups,
    "gnnadvisor, groups of 3": partial(aggregate_groups, group=3, dim_workers=8),
}
# destination 0 <- 2 3, 1 isolated, 2 <- 2 (itself) 0 0 (parallel)
BLOCK = block_of([[2, 3], [], [2, 0, 0]], 4)
X = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
EXPECTED = {
    "sum": ([7, 0, 5], [200, 0, 101, 1]),
    "mean": ([3.5, 0, 5 / 3], [200 / 3, 0, 1 / 2 + 100 / 3, 1 / 2]),
    "gcn": ([8 / 3, 2, 8 / 4], [1 / 3 + 50, 10, 1 / 3 + 50, 1 / 3]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
def test_values_by_hand(method, mode):
    x = X.clone().requires_grad_()
    out = METHODS[method](BLOCK, x, mode)
    values, grads = (torch.tensor(t).float() for t in EXPECTED[mode])
    torch.testing.assert_close(out[:, 0], values)
    out.backward(torch.tensor([[1.0], [10.0], [100.0]]))
    torch.testing.assert_close(x.grad[:, 0], grads)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15)
@given(
    num_dst=st.integers(1, 30),
    more=st.integers(0, 40),
    edges=st.integers(0, 600),
    dim=st.sampled_from([1, 7, 8, 64, 73, 256]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_random_blocks_equal_the_reference(method, mode, num_dst, more, edges, dim, weighted, seed):
    torch.manual_seed(seed)
    block = random_block(num_dst, num_dst + more, edges, seed)
    weighted = weighted and "gnnadvisor" not in method
    weights = torch.rand(edges, dtype=torch.float64).add(0.5) if weighted else None
    x = torch.randn(block.num_src, dim, dtype=torch.float64)
    grad = torch.randn(num_dst, dim, dtype=torch.float64)
    results = []
    for call in (METHODS[method], reference.aggregate):
        leaves = [t.clone().requires_grad_() for t in (x, weights) if t is not None]
        out = call(block, leaves[0], mode, *leaves[1:])
        grads = torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True)
        results.append((out, *grads))
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_agree_with_finite_differences(method, mode):
    block = random_block(7, 12, 25, 3)
    x = torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: METHODS[method](block, t, mode), (x,))


@pytest.mark.parametrize("method", METHODS)
def test_unknown_mode_is_refused(method):
    with pytest.raises(UsageError, match="mode must be 'sum', 'mean' or 'gcn', not 'max'"):
        METHODS[method](BLOCK, X, "max")


@pytest.mark.parametrize("method", ["spmm", "scatter"])
def test_wrong_number_of_weights_is_refused(method):
    with pytest.raises(UsageError, match="weights must have one row for each of the 5 edges"):
        METHODS[method](BLOCK, X, "sum", torch.ones(4))


def test_unsupported_arguments_are_refused():
    with pytest.raises(UnsupportedError, match="takes no edge weights"):
        aggregate_groups(BLOCK, X, "sum", torch.ones(5))
    with pytest.raises(UsageError, match="group must be 1 or more entries, it is 0"):
        aggregate_groups(BLOCK, X, "sum", group=0)
    with pytest.raises(UsageError, match="dim_workers must be 1 to 32 threads, it is 33"):
        aggregate_groups(BLOCK, X, "sum", dim_workers=33)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["spmm", "gnnadvisor"])
def test_narrow_rows_are_summed_in_float32_and_rounded_once(method, mode, dtype):
    """By hand: 256 + 1 - 256 is 1, which no sum in bfloat16 gives."""
    block = block_of([[0, 1, 2]], 3)
    x = torch.tensor([[256.0], [1.0], [-256.0]], dtype=dtype).requires_grad_()
    out = METHODS[method](block, x, mode)
    sums = {"sum": 1.0, "mean": 1 / 3, "gcn": 257 / 4}
    assert out.dtype == dtype
    assert out.item() == torch.tensor(sums[mode]).to(dtype).item()
    out.backward(torch.ones_like(out))
    factors = {"sum": [1, 1, 1], "mean": [1 / 3] * 3, "gcn": [2 / 4, 1 / 4, 1 / 4]}
    assert x.grad.dtype == dtype
    assert torch.equal(x.grad[:, 0], torch.tensor(factors[mode]).to(dtype))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
def test_methods_keep_float32_rows_under_autocast(method, mode):
    """1 + 2^-20 is no number of bfloat16."""
    x = X + 2.0**-20
    with torch.autocast("cpu", torch.bfloat16):
        out = METHODS[method](BLOCK, x, mode)
    torch.testing.assert_close(out, METHODS[method](BLOCK, x, mode), rtol=1e-6, atol=0)


def test_groups_by_hand():
    load_native()
    indptr = torch.tensor([0, 5, 5, 7, 9]).int()
    starts, rows = torch.ops.gnnbench.neighbor_groups(indptr, 2)
    assert starts.tolist() == [0, 2, 4, 5, 7, 9]
    assert rows.tolist() == [0, 0, 0, 2, 3]
    starts, rows = torch.ops.gnnbench.neighbor_groups(indptr, 100)
    assert (starts.tolist(), rows.tolist()) == ([0, 5, 7, 9], [0, 2, 3])


@pytest.mark.parametrize("group", [1, 7, 32])
def test_long_row_is_identical_for_any_number_of_threads(group):
    """Groups of the long row belong to chunks of several workers, some with other rows."""
    torch.manual_seed(group)
    rows = [[1, 2, 3], torch.randint(0, 50, (20_000,)).tolist(), [], [4, 5]]
    block, x = block_of(rows, 50), torch.randn(50, 70)
    results = []
    for n in (1, 2, 5):
        with threads(n):
            results.append(aggregate_groups(block, x, "sum", group=group))
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    exact = reference.aggregate(block, x, "sum")
    sizes = reference.aggregate(block, x.abs(), "sum")
    assert ((results[0] - exact).abs() <= 20_001 * 2**-24 * 1.01 * sizes).all()
