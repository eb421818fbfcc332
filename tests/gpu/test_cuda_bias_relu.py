"""A fused bias and ReLU on a GPU: values bit by bit, sums within bounds and repeatable."""

import pytest
import torch

from gnnbench.kernels.bias_relu import bias_relu

pytestmark = pytest.mark.gpu

SHAPES = [(0, 3), (1, 1), (5, 47), (8000, 64), (91_900, 64), (70_001, 100), (999, 602), (40, 8415)]


def random(*shape, dtype, seed=1):
    draws = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, generator=draws, device="cuda", dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows,dim", SHAPES)
def test_values_and_gradients_equal_torch(rows, dim, dtype):
    x, bias = random(rows, dim, dtype=dtype), random(dim, dtype=dtype, seed=2)
    grad = random(rows, dim, dtype=dtype, seed=3)
    right = torch.relu(x + bias)
    sums = (grad * (right > 0)).double().sum(0)
    actual = []
    for _ in range(2):
        leaf, own = x.clone().requires_grad_(), bias.clone().requires_grad_()
        y = bias_relu(leaf * 1, own)
        y.backward(grad)
        assert torch.equal(y.detach(), right) and torch.equal(leaf.grad, grad * (right > 0))
        assert bool(((own.grad - sums).abs() <= torch.finfo(dtype).eps * 4 * max(rows, 1)).all())
        actual.append(own.grad)
    assert torch.equal(*actual)


def test_unaligned_rows_and_nan():
    storage = torch.full((1 + 300 * 8,), torch.nan, device="cuda")
    x, bias = storage[1:].view(300, 8), torch.ones(8, device="cuda")
    x[:299] = -2
    bias_relu(x, bias)
    assert not x[:299].any() and bool(x[299].isnan().all())
    grad = torch.ones_like(x)
    _, sums = torch.ops.gnnbench.bias_relu_backward(grad, x)
    assert sums.tolist() == [1.0] * 8
