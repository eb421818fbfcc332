"""Aggregation: hand-made values, the reference, gradients, determinism, bad arguments."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from gnnbench.errors import UsageError
from gnnbench.minibatch import Block
from gnnbench.ops import aggregate as ops
from gnnbench.reference import aggregate as reference

MODES = ("sum", "mean", "gcn")


def block_of(rows: list[list[int]], num_src: int) -> Block:
    counts = torch.tensor([0] + [len(r) for r in rows]).cumsum(0).int()
    edges = torch.tensor([u for r in rows for u in r], dtype=torch.int32)
    return Block(counts, edges, torch.arange(num_src), len(rows))


# destination 0 <- 2 3, 1 isolated, 2 <- 2 (itself) 0 0 (parallel)
SMALL = block_of([[2, 3], [], [2, 0, 0]], 4)
X = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
EXPECTED = {
    "sum": [[7.0, 70.0], [0.0, 0.0], [5.0, 50.0]],
    "mean": [[3.5, 35.0], [0.0, 0.0], [5 / 3, 50 / 3]],
    "gcn": [[8 / 3, 80 / 3], [2.0, 20.0], [2.0, 20.0]],
}
# of out.sum(): what each source is weighted with
EXPECTED_GRAD = {
    "sum": [2.0, 0.0, 2.0, 1.0],
    "mean": [2 / 3, 0.0, 1 / 2 + 1 / 3, 1 / 2],
    "gcn": [1 / 3 + 2 / 4, 1.0, 1 / 3 + 2 / 4, 1 / 3],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hand_made(mode: str, dtype: torch.dtype) -> None:
    x = X.clone().to(dtype).requires_grad_()
    expected = torch.tensor(EXPECTED[mode], dtype=dtype)
    out = ops.aggregate(SMALL, x, mode)
    assert out.dtype == dtype
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(reference.aggregate(SMALL, X, mode).to(dtype), expected)
    out.sum().backward()
    grad = torch.tensor(EXPECTED_GRAD[mode], dtype=dtype)[:, None].expand(4, 2)
    torch.testing.assert_close(x.grad, grad)


def random_block(num_dst: int, num_src: int, edges: int, seed: int) -> Block:
    generator = torch.Generator().manual_seed(seed)
    cuts = torch.randint(0, edges + 1, (max(num_dst - 1, 0),), generator=generator).sort().values
    ends = torch.tensor([edges]) if num_dst else torch.empty(0, dtype=torch.int64)
    indptr = torch.cat([torch.tensor([0]), cuts, ends]).int()
    kept = edges if num_dst else 0
    indices = torch.randint(0, max(num_src, 1), (kept,), generator=generator).int()
    return Block(indptr, indices, torch.arange(num_src), num_dst)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60)
@given(
    num_dst=st.integers(0, 30),
    more=st.integers(0, 40),
    edges=st.integers(0, 200),
    # every path: 8 vectors, 4, 1 and the tail, alone and together
    dim=st.sampled_from([0, 1, 3, 4, 8, 11, 31, 32, 47, 63, 64, 100, 128, 173]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 2**31),
)
def test_equals_the_reference(
    mode: str, num_dst: int, more: int, edges: int, dim: int, dtype: torch.dtype, seed: int
) -> None:
    block = random_block(num_dst, num_dst + max(more, 1), edges, seed)
    x = torch.randn(block.num_src, dim, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(num_dst, dim, dtype=torch.float64)
    expected = reference.aggregate(block, x, mode)
    expected.backward(grad)
    ours = x.detach().to(dtype).requires_grad_()
    out = ops.aggregate(block, ours, mode)
    out.backward(grad.to(dtype))
    tolerance = 1e-4 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)
    assert ours.grad is not None
    torch.testing.assert_close(ours.grad.double(), x.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [1, 5, 36])
def test_gradcheck(mode: str, dim: int) -> None:
    block = random_block(7, 12, 25, 3)
    x = torch.randn(12, dim, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: ops.aggregate(block, t, mode), (x,))


@pytest.mark.parametrize("mode", MODES)
def test_threads_do_not_change_a_bit(mode: str) -> None:
    block = random_block(3000, 9000, 60_000, 1)
    x = torch.randn(9000, 50)
    grad = torch.randn(3000, 50)
    results = []
    before = torch.get_num_threads()
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        leaf = x.clone().requires_grad_()
        out = ops.aggregate(block, leaf, mode)
        out.backward(grad)
        assert leaf.grad is not None
        results.append((out.detach(), leaf.grad))
    torch.set_num_threads(before)
    for out, leaf_grad in results[1:]:
        assert torch.equal(out, results[0][0])
        assert torch.equal(leaf_grad, results[0][1])


def test_gradient_that_is_not_contiguous() -> None:
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
        (SMALL, X[:2], "sum", "a block of 3 destinations needs as many sources"),
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
def test_bad_arguments(block: Block, x: torch.Tensor, mode: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ops.aggregate(block, x, mode)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_read_and_rounded_as_torch_does(dtype: torch.dtype) -> None:
    every = torch.arange(-(2**15), 2**15).short().view(dtype)
    one = block_of([[0]], 1)
    for width in (2**16, 8):  # by whole packs and by single values
        x = every.view(-1, width)
        got = torch.cat([ops.aggregate(one, row[None], "sum") for row in x[:4096]])
        torch.testing.assert_close(got, x[:4096], rtol=0, atol=0, equal_nan=True)
    # A sum in float32 rounded once: torch's conversion of the same sum.
    pairs = torch.randint(-(2**15), 2**15, (2, 200_000)).short().view(dtype)
    pairs[1, :100_000] *= 2**-8
    got = ops.aggregate(block_of([[0, 1]], 2), pairs, "sum")
    expected = (pairs[0].float() + pairs[1].float()).to(dtype)
    torch.testing.assert_close(got[0], expected, rtol=0, atol=0, equal_nan=True)
