"""Attention's operators and GNNAdvisor's groups on the GPU, and gradients by float64 gradcheck."""

from functools import partial

import pytest
import torch
from drawn_blocks import DrawnBlock, assert_within, drawn_block, sum_dtype

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import aggregate
from gnnbench.kernels.aggregate_groups import aggregate_groups
from gnnbench.kernels.aggregate_memory_aware import (
    aggregate_memory_aware,
    aggregate_memory_aware_warp,
    attend_memory_aware,
    attend_memory_aware_warp,
)
from gnnbench.kernels.aggregate_tuned import aggregate_tuned
from gnnbench.kernels.attention import attend

pytestmark = pytest.mark.gpu

MODES = ["sum", "mean", "gcn"]
HEADS = [(8, 8), (1, 1), (1, 64), (3, 5), (2, 64), (4, 1), (2, 6), (5, 40), (1, 300)]
BLOCKS = [(300, 700, 9, 0), (50, 200, 5, 1000)]


def random(*shape, dtype=torch.float32, seed=1):
    draws = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, generator=draws, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("heads, width", HEADS)
def test_heads(ops, heads, width, dtype):
    """Weighted sums of heads by both kernels, their transposes, and products at edges."""
    for sizes in BLOCKS:
        block = drawn_block(*sizes[:3], seed=width, hub=sizes[3], device="cuda")
        edges, back = block.indices.numel(), ops.transpose(block.indptr, block.indices, sizes[1])
        x = random(sizes[1], heads, width, dtype=dtype)
        grad = random(sizes[0], heads, width, dtype=dtype, seed=2)
        weights = random(edges, heads, dtype=sum_dtype(dtype), seed=3)
        out = ops.aggregate_heads(block.indptr, block.indices, x, weights, sizes[0])
        aware = ops.aggregate_memory_aware(
            block.indptr, block.indices, x, sizes[0], "sum", weights, 8, 32
        )
        warp = ops.aggregate_memory_aware_warp(
            block.indptr, block.indices, x, sizes[0], "sum", weights
        )
        grad_x = ops.aggregate_heads_transposed(*back, grad, weights)
        warp_grad = ops.aggregate_memory_aware_warp_transposed(
            block.indptr, *back, grad, "sum", weights
        )
        scattered = ops.aggregate_memory_aware_scattered(
            block.indptr, block.indices, grad, sizes[1], "sum", weights, 8, 32
        )
        aware_grad = ops.aggregate_memory_aware_transposed(
            block.indptr, *back, grad, "sum", weights, 8, 32
        )
        dots = ops.edge_dots(block.indptr, block.indices, grad, x)
        terms = int(block.indptr.diff().max()) + int(back[0].diff().max())
        for head in range(heads):
            matrix = block.matrix("sum", weights[:, head])
            size = block.matrix("sum", weights[:, head].abs())
            z, g = x[:, head].double(), grad[:, head].double()
            for actual in (out, aware, warp):
                assert_within(actual[:, head], matrix @ z, size @ z.abs(), terms)
            for actual in (grad_x, aware_grad, warp_grad, scattered):
                assert_within(actual[:, head], matrix.T @ g, size.T @ g.abs(), terms)
            each = g[block.rows] * z[block.indices.long()]
            assert_within(dots[:, head], each.sum(1), each.abs().sum(1), width)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_edge_operators(ops, heads, dtype):
    for sizes in BLOCKS:
        block = drawn_block(*sizes[:3], seed=heads, hub=sizes[3], device="cuda")
        rows, columns = block.rows, block.indices.long()
        edges, back = columns.numel(), ops.transpose(block.indptr, block.indices, sizes[1])
        src, dst = random(sizes[1], heads, dtype=dtype), random(sizes[0], heads, dtype=dtype)
        scores = ops.edge_add(block.indptr, block.indices, src, dst)
        assert torch.equal(scores, src[columns] + dst[rows])
        soft = ops.edge_softmax(block.indptr, scores)
        exact = scores.double()
        top = torch.full((sizes[0], heads), -torch.inf, dtype=torch.float64, device="cuda")
        top.scatter_reduce_(0, rows[:, None].expand(-1, heads), exact, "amax")
        exact = (exact - top[rows]).exp()
        exact /= torch.zeros_like(top).index_add_(0, rows, exact)[rows]
        assert_within(soft, exact, exact, 1000)
        grad = random(edges, heads, dtype=dtype, seed=2)
        actual = ops.edge_softmax_backward(block.indptr, soft, grad)
        s, g = soft.double(), grad.double()
        sums = torch.zeros_like(top).index_add_(0, rows, s * g)
        size = torch.zeros_like(top).index_add_(0, rows, s * g.abs())
        assert_within(actual, s * (g - sums[rows]), s * (g.abs() + size[rows]), 1000)
        for actual, over, number in (
            (ops.edge_sums(block.indptr, grad), rows, sizes[0]),
            (ops.edge_sums(back[0], grad, back[2]), columns, sizes[1]),
        ):
            sums = g.new_zeros(number, heads).index_add_(0, over, g)
            assert_within(
                actual, sums, g.new_zeros(number, heads).index_add_(0, over, g.abs()), 1500
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim, workers", [(1, 32), (30, 16), (64, 32), (1025, 32)])
@pytest.mark.parametrize("group", [1, 4, 32, 100])
def test_groups(ops, dim, workers, group, dtype):
    for sizes in BLOCKS:
        block = drawn_block(*sizes[:3], seed=dim, hub=sizes[3], device="cuda")
        starts, rows = ops.neighbor_groups(block.indptr, group)
        right = ops.neighbor_groups(block.indptr.cpu(), group)
        assert torch.equal(starts.cpu(), right[0]) and torch.equal(rows.cpu(), right[1])
        x = random(sizes[1], dim, dtype=dtype)
        out = ops.aggregate_groups(starts, rows, block.indices, x, sizes[0], workers)
        matrix = block.matrix("sum")
        assert_within(out, matrix @ x.double(), matrix @ x.double().abs(), 1000)


def as_block(block: DrawnBlock) -> Block:
    nodes = torch.arange(block.num_src, device="cuda")
    return Block(block.indptr, block.indices, nodes, block.num_dst)


METHODS = {
    "csr": aggregate, "tuned": aggregate_tuned, "memory-aware": aggregate_memory_aware,
    "memory-aware, 4 by 16": partial(aggregate_memory_aware, x_nodes=4, y_dims=16),
    "memory-aware, scatter": partial(aggregate_memory_aware, scatter=True),
    "memory-aware-warp": aggregate_memory_aware_warp,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", [*METHODS, "gnnadvisor"])
def test_gradients(method, mode):
    block = as_block(drawn_block(6, 9, 4, seed=5, device="cuda"))
    x = random(9, 3, dtype=torch.float64).requires_grad_()
    weights = (random(block.num_edges, dtype=torch.float64).abs() + 0.5).requires_grad_()
    if method == "gnnadvisor":
        call, given = lambda x: aggregate_groups(block, x, mode, group=2), (x,)
        # Atomics add in any order.
        assert torch.autograd.gradcheck(call, given, nondet_tol=1e-12)
        return
    tolerance = 1e-12 if "scatter" in method else 0.0  # atomics add in any order
    for given in ((x,), (x, weights)):
        assert torch.autograd.gradcheck(
            lambda x, *w: METHODS[method](block, x, mode, *w), given, nondet_tol=tolerance
        )


@pytest.mark.parametrize("layer", [attend, attend_memory_aware, attend_memory_aware_warp])
def test_gradients_of_attention(layer):
    block = as_block(drawn_block(6, 9, 4, seed=5, device="cuda"))
    z = random(9, 2, 3, dtype=torch.float64).requires_grad_()
    of_source, of_destination = (
        random(n, 2, dtype=torch.float64, seed=n).requires_grad_() for n in (9, 6)
    )
    call = lambda *given: layer(block, *given, 0.2)  # noqa: E731
    assert torch.autograd.gradcheck(call, (z, of_source, of_destination))
