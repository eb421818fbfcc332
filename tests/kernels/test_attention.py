"""Operators on edges: values by hand and reference, gradients, determinism, bad arguments."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from ops_blocks import assert_sums, block_of, random_block
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels import attention as ops
from gnnbench.kernels.library import load_native
from gnnbench.kernels.reference import aggregate as reference

# destination 0 <- 2 3, 1 isolated, 2 <- 2 (itself) 0 0 (parallel)
BLOCK = block_of([[2, 3], [], [2, 0, 0]], 4)
LN2 = 0.6931471805599453


def test_edge_add_by_hand():
    src = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]).requires_grad_()
    dst = torch.tensor([[0.1, 0.0], [0.2, 0.0], [0.3, 5.0]]).requires_grad_()
    out = ops.edge_add(BLOCK, src, dst)
    expected = [[3.1, 30.0], [4.1, 40.0], [3.3, 35.0], [1.3, 15.0], [1.3, 15.0]]
    torch.testing.assert_close(out, torch.tensor(expected))
    out.backward(torch.tensor([[1.0, 0], [2, 0], [4, 0], [8, 1], [16, 2]]))
    assert src.grad.tolist() == [[24.0, 3.0], [0.0, 0.0], [5.0, 0.0], [2.0, 0.0]]
    assert dst.grad.tolist() == [[3.0, 0.0], [0.0, 0.0], [28.0, 3.0]]


def test_edge_softmax_by_hand():
    scores = torch.tensor([[0.0], [LN2], [LN2], [0.0], [0.0]], dtype=torch.float64)
    scores.requires_grad_()
    out = ops.edge_softmax(BLOCK, scores)
    expected = torch.tensor([1 / 3, 2 / 3, 1 / 2, 1 / 4, 1 / 4], dtype=torch.float64)
    torch.testing.assert_close(out[:, 0], expected)
    out.backward(torch.tensor([[3.0], [0.0], [4.0], [0.0], [8.0]], dtype=torch.float64))
    # p * (g - sum of p g): the sums are 1 and 4
    expected = torch.tensor([2 / 3, -2 / 3, 0, -1, 1], dtype=torch.float64)
    torch.testing.assert_close(scores.grad[:, 0], expected)


def test_aggregate_heads_by_hand():
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]]).expand(4, 2).unsqueeze(2).clone()
    x.requires_grad_()
    weights = torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10]]).requires_grad_()
    out = ops.aggregate_heads(BLOCK, x, weights)
    assert out.squeeze(2).tolist() == [[15.0, 22.0], [0.0, 0.0], [31.0, 36.0]]
    out.backward(torch.tensor([[1.0, 10.0], [0.0, 0.0], [100.0, 1000.0]]).unsqueeze(2))
    assert x.grad.squeeze(2).tolist() == [[1600, 18000], [0, 0], [501, 6020], [3, 40]]
    assert weights.grad.tolist() == [[3, 30], [4, 40], [300, 3000], [100, 1000], [100, 1000]]


SHAPES = {
    "heads": st.sampled_from([0, 1, 2, 3, 7, 8, 16, 17, 33]),
    "width": st.sampled_from([0, 1, 3, 8, 15, 16, 17, 32, 64, 70, 128, 257]),
    "num_dst": st.integers(0, 12),
    "more": st.integers(0, 15),
    "edges": st.integers(0, 60),
    "dtype": st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
    "seed": st.integers(0, 2**31),
}


def compare_heads(block, heads, width, dtype):
    """Compare values and both gradients with the reference, within error bounds of the sums."""
    num_dst, edges = block.num_dst, block.num_edges
    x = torch.randn(block.num_src, heads, width).to(dtype).requires_grad_()
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    weights = torch.randn(block.num_edges, heads).to(sums).requires_grad_()
    grad = torch.randn(num_dst, heads, width).to(dtype)
    out = ops.aggregate_heads(block, x, weights)
    out.backward(grad)
    assert out.dtype == dtype and weights.grad.dtype == sums

    def exact(change):
        rows, shares = change(x.detach().double()), change(weights.detach().double())
        rows, shares = rows.requires_grad_(), shares.requires_grad_()
        actual = reference.aggregate_heads(block, rows, shares)
        grads = (torch.zeros_like(rows), torch.zeros_like(shares))
        if actual.requires_grad:  # at least one head and one edge
            leaves, outward = [rows, shares], change(grad.double())
            grads = torch.autograd.grad(
                actual, leaves, outward, allow_unused=True, materialize_grads=True
            )
        return actual.detach(), *grads

    got = (out, x.grad, weights.grad)
    terms = (edges + 2, edges + 2, width + 2)
    for ours, truth, sizes, n in zip(got, exact(lambda t: t), exact(torch.abs), terms, strict=True):
        assert_sums(ours, truth, sizes, n)


@settings(max_examples=40)
@given(**SHAPES)
def test_heads_equal_the_reference(heads, width, num_dst, more, edges, dtype, seed):
    torch.manual_seed(seed)
    compare_heads(random_block(num_dst, num_dst + max(more, 1), edges, seed), heads, width, dtype)


# Widths: whole registers, half a register (paired and single), other sizes, several passes.
@pytest.mark.parametrize(("heads", "width"), [(1, 256), (3, 80), (8, 8), (22, 8), (7, 8), (4, 70)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_heads_of_every_width_equal_the_reference(heads, width, dtype):
    torch.manual_seed(width)
    compare_heads(random_block(9, 20, 60, width), heads, width, dtype)


@settings(max_examples=40)
@given(
    heads=SHAPES["heads"], num_dst=SHAPES["num_dst"], more=SHAPES["more"], edges=SHAPES["edges"],
    scale=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    dtype=st.sampled_from([torch.float32, torch.float64]), seed=SHAPES["seed"],
)  # fmt: skip
def test_softmax_equals_the_reference(heads, num_dst, more, edges, scale, dtype, seed):
    torch.manual_seed(seed)
    block = random_block(num_dst, num_dst + max(more, 1), edges, seed)
    scores = (torch.randn(block.num_edges, heads) * scale).to(dtype).requires_grad_()
    grad = torch.randn(block.num_edges, heads).to(dtype)
    out = ops.edge_softmax(block, scores)
    exact = scores.detach().double().requires_grad_()
    truth = reference.edge_softmax(block, exact)
    # The rounding error of a score difference is half a unit of the difference; its exponential has
    # the same relative error. Exponentials below e^-100 are 0 or negligible.
    unit = torch.finfo(dtype).eps
    near = (edges + 110 + 4) * unit
    assert ((out.double() - truth).abs() <= near * truth + 1e-37).all()
    assert out.dtype == dtype and ((out >= 0) & (out <= 1 + near)).all()
    out.backward(grad)
    if edges and num_dst and heads:
        truth.backward(grad.double())
        largest = float(grad.abs().max())
        assert ((scores.grad.double() - exact.grad).abs() <= 4 * near * largest).all()


def test_softmax_of_large_scores_does_not_overflow():
    scores = torch.tensor([[3e38], [3e38], [-3e38], [-3e38], [-3e38]])
    expected = torch.tensor([[0.5], [0.5], [1 / 3], [1 / 3], [1 / 3]])
    torch.testing.assert_close(ops.edge_softmax(BLOCK, scores), expected)
    scores = torch.tensor([[0.0], [-torch.inf], [0.0], [torch.nan], [0.0]])
    out = ops.edge_softmax(BLOCK, scores).flatten()
    assert out[:2].tolist() == [1.0, 0.0] and out[2:].isnan().all()


@pytest.mark.parametrize(("heads", "width"), [(1, 5), (3, 8), (2, 17)])
def test_gradients_agree_with_finite_differences(heads, width):
    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    block = random_block(7, 12, 25, 3)
    src, dst, scores = random(12, heads), random(7, heads), random(25, heads)
    x = random(12, heads, width)
    check = torch.autograd.gradcheck
    assert check(lambda a, b: ops.edge_add(block, a, b), (src, dst))
    assert check(lambda s: ops.edge_softmax(block, s), (scores,))
    assert check(lambda t, w: ops.aggregate_heads(block, t, w), (x, scores))
    assert check(lambda t, a, b: ops.attend(block, t, a, b, 0.2), (x, src, dst))


def test_results_are_identical_for_any_number_of_threads():
    torch.manual_seed(1)
    x, grad = torch.randn(9000, 8, 8), torch.randn(3000, 8, 8)
    of_src, of_dst = torch.randn(9000, 8), torch.randn(3000, 8)
    actual = []
    for n in (1, 2, 5):
        leaves = [t.clone().requires_grad_() for t in (x, of_src, of_dst)]
        with threads(n):
            out = ops.attend(random_block(3000, 9000, 60_000, 1), *leaves, 0.2)
            out.backward(grad)
        actual.append([out.detach(), *(t.grad for t in leaves)])
    for tensors in actual[1:]:
        assert all(torch.equal(a, b) for a, b in zip(tensors, actual[0], strict=True))


ONES = torch.ones(4, 2, 3)
CALLS = {
    "x must have 3 dimension": lambda: ops.aggregate_heads(BLOCK, ONES[0], ONES[0]),
    "weights must have one row for each of the 5 edges, it has 4": (
        lambda: ops.aggregate_heads(BLOCK, ONES, ONES[:, :, 0])
    ),
    "weights must have one column for each of the 2 heads": (
        lambda: ops.aggregate_heads(BLOCK, ONES, torch.ones(5, 3))
    ),
    "indices holds 3 at position 1": lambda: ops.aggregate_heads(BLOCK, ONES[:3], torch.ones(5, 2)),
    "scores must have 2 dimension": lambda: ops.edge_softmax(BLOCK, torch.ones(5)),
    "indptr must start at 0, never decrease and end at the number": (
        lambda: ops.edge_softmax(BLOCK, torch.ones(4, 1))
    ),
    "both sides must have rows of one shape; dimension 1 is 2 and 3": (
        lambda: ops.edge_add(BLOCK, torch.ones(4, 2), torch.ones(3, 3))
    ),
    "both sides must be of one dtype": (
        lambda: ops.edge_add(BLOCK, torch.ones(4, 2), torch.ones(3, 2).double())
    ),
    "indptr must hold num_dst \\+ 1 = 3 offsets, it holds 4": (
        lambda: ops.edge_add(BLOCK, torch.ones(4, 2), torch.ones(2, 2))
    ),
}


@pytest.mark.parametrize("message", CALLS)
def test_bad_arguments_are_refused(message):
    with pytest.raises(UsageError, match=message):
        CALLS[message]()


def test_invalid_transpose_is_refused():
    load_native()
    ints = [torch.tensor(t).int() for t in ([0, 1, 2], [0, 0], [0, 1])]
    grad, weights = torch.ones(1, 1, 1), torch.ones(2, 1)
    call = torch.ops.gnnbench.aggregate_heads_transposed
    assert call(*ints, grad, weights).flatten().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="t_edge holds 2 at position 1"):
        call(*ints[:2], torch.tensor([0, 2]).int(), grad, weights)
    with pytest.raises(RuntimeError, match="t_dst holds 1 at position 1"):
        call(ints[0], torch.tensor([0, 1]).int(), ints[2], grad, weights)
    with pytest.raises(RuntimeError, match="t_edge must hold one edge for each of t_dst, 2"):
        call(*ints[:2], ints[2][:1], grad, weights)
