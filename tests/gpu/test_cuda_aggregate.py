"""Aggregation and its gradient on the GPU: values by hand, equality with the CPU, repeatability."""

import numpy as np
import pytest
import torch
from drawn_blocks import assert_within
from gpu_graphs import assert_same

pytestmark = pytest.mark.gpu

MODES = ["sum", "mean", "gcn"]
CLOSE = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}, torch.float64: {"rtol": 1e-12, "atol": 1e-12}}


def random_block(num_dst: int, num_src: int, top: int, seed: int):
    """Rows of 0 to ``top`` edges; sources can repeat, and source 0 is a hub."""
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, top + 1, num_dst)
    indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32))
    indices = rng.integers(0, num_src, int(indptr[-1])).astype(np.int32)
    indices[rng.random(len(indices)) < 0.2] = 0
    return indptr, torch.from_numpy(indices)


def backward(ops, indptr, indices, grad, num_src, mode):
    """The gradient of x from that of its aggregation, with a new transpose."""
    transposed = ops.transpose(indptr, indices, num_src)
    return ops.aggregate_transposed(indptr, *transposed, grad, mode)


# Destination 0 has sources 1 and 2, destination 1 none, destination 2 has source 3 twice.
INDPTR = torch.tensor([0, 2, 2, 4], dtype=torch.int32)
INDICES = torch.tensor([1, 2, 3, 3], dtype=torch.int32)
X = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
FORWARD = {"sum": [6, 0, 16], "mean": [3, 0, 8], "gcn": [7 / 3, 2, 20 / 3]}
# Gradients of the rows 1, 10, 100.
BACKWARD = {
    "sum": [0, 1, 1, 200],
    "mean": [0, 0.5, 0.5, 100],
    "gcn": [1 / 3, 1 / 3 + 10, 1 / 3 + 100 / 3, 200 / 3],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_by_hand(ops, gpu, mode, dim, dtype):
    put = gpu.put
    x = X.to(dtype).expand(-1, dim).contiguous()
    out = ops.aggregate(put(INDPTR), put(INDICES), put(x), 3, mode).cpu()
    expected = torch.tensor(FORWARD[mode], dtype=dtype)[:, None].expand(-1, dim)
    torch.testing.assert_close(out, expected.contiguous())
    grad = torch.tensor([[1.0], [10.0], [100.0]], dtype=dtype).expand(-1, dim).contiguous()
    back = backward(ops, put(INDPTR), put(INDICES), put(grad), 4, mode).cpu()
    expected = torch.tensor(BACKWARD[mode], dtype=dtype)[:, None].expand(-1, dim)
    torch.testing.assert_close(back, expected.contiguous())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 3, 16, 64, 100, 128, 130, 256])
def test_values_and_gradients_equal_the_cpu(ops, gpu, mode, dtype, dim):
    put = gpu.put
    indptr, indices = random_block(700, 2500, 23, seed=dim)
    generator = torch.Generator().manual_seed(dim)
    x = torch.randn(2500, dim, generator=generator, dtype=dtype)
    grad = torch.randn(700, dim, generator=generator, dtype=dtype)
    block = (put(indptr), put(indices))
    torch.testing.assert_close(
        ops.aggregate(*block, put(x), 700, mode).cpu(),
        ops.aggregate(indptr, indices, x, 700, mode),
        **CLOSE[dtype],
    )
    # The hub's terms are added in another order, so the exact sum is compared.
    assert_within(
        backward(ops, *block, put(grad), 2500, mode).cpu(),
        backward(ops, indptr, indices, grad.double(), 2500, mode),
        backward(ops, indptr, indices, grad.double().abs(), 2500, mode),
        int(torch.bincount(indices).max()),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [1, 8, 130, 260])
@pytest.mark.parametrize("degree", [127, 128, 129, 1000, 5000])
def test_gradient_of_hubs(ops, gpu, mode, dim, degree):
    """Sources with more edges than one group of lanes adds, and their neighbours."""
    put = gpu.put
    # Destination v has the sources 0, v % 3 and v.
    v = torch.arange(degree, dtype=torch.int32)
    indices = torch.stack([torch.zeros_like(v), v % 3, v], dim=1).flatten()
    indptr = torch.arange(degree + 1, dtype=torch.int32) * 3
    grad = torch.randint(-8, 9, (degree, dim), generator=torch.Generator().manual_seed(dim)).float()
    on_gpu = backward(ops, put(indptr), put(indices), put(grad), degree + 2, mode).cpu()
    exact = backward(ops, indptr, indices, grad.double(), degree + 2, mode)
    sizes = backward(ops, indptr, indices, grad.double().abs(), degree + 2, mode)
    assert_within(on_gpu, exact, sizes, int(torch.bincount(indices).max()))
    if mode == "sum":  # integers: every order gives the same bits
        assert torch.equal(on_gpu.double(), exact)


@pytest.mark.parametrize("mode", MODES)
def test_repeated_calls_give_the_same_bits(ops, gpu, mode):
    put = gpu.put
    indptr, indices = (put(t) for t in random_block(3000, 5000, 40, seed=1))
    x, grad = put(torch.randn(5000, 128)), put(torch.randn(3000, 128))
    forward = ops.aggregate(indptr, indices, x, 3000, mode).cpu()
    back = backward(ops, indptr, indices, grad, 5000, mode).cpu()
    for _ in range(5):
        assert_same(ops.aggregate(indptr, indices, x, 3000, mode), forward)
        assert_same(backward(ops, indptr, indices, grad, 5000, mode), back)


@pytest.mark.parametrize("mode", MODES)
def test_empty_blocks(ops, gpu, mode):
    put = gpu.put
    none = put(torch.empty(0, dtype=torch.int32))
    x = put(torch.ones(3, 4))
    rows = put(torch.zeros(4, dtype=torch.int32))
    expected = torch.ones(3, 4) if mode == "gcn" else torch.zeros(3, 4)
    assert_same(ops.aggregate(rows, none, x, 3, mode), expected)
    assert_same(backward(ops, rows, none, x, 3, mode), expected)
    start = put(torch.zeros(1, dtype=torch.int32))
    assert ops.aggregate(start, none, x, 0, mode).shape == (0, 4)
    assert_same(backward(ops, start, none, x[:0], 3, mode), torch.zeros(3, 4))


def test_bad_arguments(ops, gpu):
    put = gpu.put
    block = (put(INDPTR), put(INDICES))
    with pytest.raises(RuntimeError, match="mode must be"):
        ops.aggregate(*block, put(X), 3, "max")
    with pytest.raises(RuntimeError, match="x must be float16, bfloat16, float32"):
        ops.aggregate(*block, put(X.int()), 3, "sum")
    with pytest.raises(RuntimeError, match="indptr must hold num_dst"):
        ops.aggregate(*block, put(X), 2, "sum")
    with pytest.raises(RuntimeError, match="needs at least as many sources"):
        ops.aggregate(*block, put(X[:2]), 3, "gcn")
