"""Backward over sources of very different degrees: hubs are split, most have one edge or none."""

import pytest
import torch
from drawn_blocks import DrawnBlock, assert_within, drawn_block, sum_dtype

pytestmark = pytest.mark.gpu

MODES = ["sum", "mean", "gcn"]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
WIDTHS = [1, 3, 8, 33, 64, 100, 128, 130, 256, 257, 602, 1025]


def skewed_block(num_dst, num_src, edges, seed):
    """Source degrees by a power law: the first has thousands of edges, most of the last none."""
    draws = torch.Generator("cuda").manual_seed(seed)
    u = torch.rand(edges, generator=draws, device="cuda", dtype=torch.float64)
    sources = (num_src**u - 1).int().clamp_(max=num_src - 1)
    rows = torch.randint(num_dst, (edges,), generator=draws, device="cuda")
    indptr = torch.zeros(num_dst + 1, dtype=torch.int32, device="cuda")
    indptr[1:] = torch.bincount(rows, minlength=num_dst).cumsum(0)
    return DrawnBlock(indptr, sources, num_src)


def transposed(ops, block):
    return ops.transpose(block.indptr, block.indices, block.num_src)


def random(*shape, dtype=torch.float32, seed=1):
    draws = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, generator=draws, device="cuda").to(dtype)


def small_numbers(*shape, dtype=torch.float32):
    """Integers, so that sums are exact in any order."""
    draws = torch.Generator("cuda").manual_seed(5)
    return torch.randint(-3, 4, shape, generator=draws, device="cuda").to(dtype)


def exact(block, grad):
    """Sums over the transpose in float64."""
    out = torch.zeros(block.num_src, grad.shape[1], dtype=torch.float64, device="cuda")
    return out.index_add_(0, block.indices.long(), grad.double()[block.rows])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", WIDTHS)
def test_hubs_and_short_rows(ops, dim, dtype, weighted):
    block = skewed_block(1500, 4000, 60_000, seed=dim)
    back = transposed(ops, block)
    degrees = back[0].diff()
    assert int(degrees.max()) > 33 * 128 and int((degrees == 0).sum()) > 100
    grad = random(1500, dim, dtype=dtype)
    weights = None
    if weighted:
        draws = torch.Generator("cuda").manual_seed(dim)
        weights = torch.rand(60_000, generator=draws, device="cuda") + 0.1
        weights = weights.to(sum_dtype(dtype))
    terms = int(degrees.max()) + int(block.indptr.diff().max())
    for mode in MODES:
        matrix = block.matrix(mode, weights).T
        args = (block.indptr, *back, grad, mode, weights)
        out = ops.aggregate_transposed(*args)
        assert out.dtype == dtype
        assert_within(out, matrix @ grad.double(), matrix @ grad.double().abs(), terms)
        for _ in range(3):
            assert torch.equal(out, ops.aggregate_transposed(*args))


@pytest.mark.parametrize("dim", [1, 64, 128, 602])
def test_one_row_of_all_edges(ops, dim):
    """300,000 edges of one source, alone and after sources without edges."""
    grad = small_numbers(300, dim)
    indptr = torch.arange(0, 300_001, 1000, dtype=torch.int32, device="cuda")
    for num_src, hub in ((300, 0), (300, 299), (5000, 2000)):
        indices = torch.full((300_000,), hub, dtype=torch.int32, device="cuda")
        block = DrawnBlock(indptr, indices, num_src)
        out = ops.aggregate_transposed(indptr, *transposed(ops, block), grad, "sum")
        assert torch.equal(out.double(), exact(block, grad))


@pytest.mark.parametrize(
    "degree", [0, 1, 63, 64, 126, 127, 128, 129, 130, 255, 256, 257, 4095, 4096, 4225, 4353]
)
def test_row_lengths_near_the_chunk_size(ops, degree):
    """At every position between short rows."""
    for before in range(0, 140, 3):
        sources = [*range(before), *[before] * degree, before + 1, before + 1]
        indices = torch.tensor(sources, dtype=torch.int32, device="cuda")
        indptr = torch.tensor([0, len(sources)], dtype=torch.int32, device="cuda")
        block = DrawnBlock(indptr, indices, before + 3)
        grad = torch.ones(1, 5, device="cuda")
        out = ops.aggregate_transposed(indptr, *transposed(ops, block), grad, "sum")
        assert out[:, 4].tolist() == [1] * before + [degree, 2, 0]


def test_more_edges_than_minimal_chunks_hold(ops):
    """Three million edges of 500 sources: chunks have more than 128 edges."""
    block = skewed_block(4000, 4000, 3_000_000, seed=1)
    block.indices %= 500
    grad = small_numbers(4000, 40)
    out = ops.aggregate_transposed(block.indptr, *transposed(ops, block), grad, "sum")
    assert torch.equal(out.double(), exact(block, grad))


@pytest.mark.parametrize("edges", [0, 1, 64, 65])
def test_very_few_edges(ops, edges):
    """No row is long, or one is just long enough."""
    indptr = torch.tensor([0, edges], dtype=torch.int32, device="cuda")
    indices = torch.full((edges,), 7, dtype=torch.int32, device="cuda")
    block = DrawnBlock(indptr, indices, 100_000)
    grad = torch.full((1, 6), 2.0, device="cuda")
    out = ops.aggregate_transposed(indptr, *transposed(ops, block), grad, "sum")
    assert out[7].tolist() == [2 * edges] * 6
    assert float(out.abs().sum()) == 12 * edges


def test_identical_bits_on_a_busy_gpu(ops):
    """A block of realistic size, with another stream that keeps half the GPU busy."""
    block = skewed_block(160_000, 270_000, 780_000, seed=2)
    back = transposed(ops, block)
    grad = random(160_000, 64)
    first = ops.aggregate_transposed(block.indptr, *back, grad, "sum")
    torch.cuda.synchronize()
    other, big = torch.cuda.Stream(), random(4096, 4096)
    for _ in range(30):
        with torch.cuda.stream(other):
            big @ big
        assert torch.equal(first, ops.aggregate_transposed(block.indptr, *back, grad, "sum"))


@pytest.mark.parametrize("mode", MODES)
def test_within_a_cuda_graph(ops, mode):
    """Captured on one block and replayed on others of the same shape; reads no size back."""
    blocks = [skewed_block(3000, 5000, 60_000, seed=seed) for seed in range(3)]
    grads = [random(3000, 64, seed=seed) for seed in range(3)]
    indptr, indices, grad = blocks[0].indptr.clone(), blocks[0].indices.clone(), grads[0].clone()

    def step():
        back = ops.transpose(indptr, indices, 5000)
        return ops.aggregate_transposed(indptr, *back, grad, mode)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    for block, values in zip(blocks, grads, strict=True):
        indptr.copy_(block.indptr)
        indices.copy_(block.indices)
        grad.copy_(values)
        graph.replay()
        right = ops.aggregate_transposed(block.indptr, *transposed(ops, block), values, mode)
        assert torch.equal(out, right)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads, width", [(8, 8), (3, 5), (2, 64), (1, 300)])
def test_heads_of_hubs(ops, heads, width, dtype):
    block = skewed_block(700, 1500, 60_000, seed=width)
    back = transposed(ops, block)
    grad = random(700, heads, width, dtype=dtype)
    weights = random(60_000, heads, dtype=sum_dtype(dtype), seed=3)
    out = ops.aggregate_heads_transposed(*back, grad, weights)
    assert torch.equal(out, ops.aggregate_heads_transposed(*back, grad, weights))
    terms = int(back[0].diff().max())
    for head in range(heads):
        matrix = block.matrix("sum", weights[:, head]).T
        sizes = block.matrix("sum", weights[:, head].abs()).T
        g = grad[:, head].double()
        assert_within(out[:, head], matrix @ g, sizes @ g.abs(), terms)


@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_edge_sums_of_hubs(ops, heads, dtype):
    block = skewed_block(700, 1500, 60_000, seed=heads)
    back = transposed(ops, block)
    values = small_numbers(60_000, heads, dtype=dtype)
    out = ops.edge_sums(back[0], values, back[2])
    right = torch.zeros(1500, heads, dtype=torch.float64, device="cuda")
    assert torch.equal(out.double(), right.index_add_(0, block.indices.long(), values.double()))


def test_unaligned_rows(ops):
    """Unaligned gradients use narrower loads; partial sums keep their layout."""
    block = drawn_block(300, 700, 40, seed=1, device="cuda")
    back = transposed(ops, block)
    for dtype in DTYPES:
        for skipped in (1, 2, 4):
            flat = random(300 * 64 + 8, dtype=dtype)
            grad = flat[skipped : skipped + 300 * 64].view(300, 64)
            out = ops.aggregate_transposed(block.indptr, *back, grad, "sum")
            aligned = ops.aggregate_transposed(block.indptr, *back, grad.clone(), "sum")
            assert torch.equal(out, aligned)
