"""A fused bias and ReLU compared with torch's two operators; CUDA kernels run on the host."""

import ctypes

import pytest
import torch
from ops_on_host import on_host, pointer
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels.bias_relu import bias_relu

SHAPES = [(0, 3), (1, 1), (3, 4), (5, 47), (700, 64), (1025, 7), (130, 200), (2, 1031)]
DTYPES = [torch.float32, torch.float64]


def random_rows(rows, dim, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, dim, generator=generator, dtype=dtype)


def torch_results(x, bias, grad):
    """Values and gradients by torch; the gradient of the bias is summed in float64."""
    x, bias = x.clone().requires_grad_(), bias.clone().requires_grad_()
    y = torch.relu(x + bias)
    y.backward(grad)
    return y.detach(), x.grad, (grad * (y > 0)).double().sum(0)


def close(actual, exact, rows):
    """Asserts that a sum of ``rows`` numbers of magnitude 1 is within its error bound."""
    eps = torch.finfo(actual.dtype).eps
    assert bool(((actual.double() - exact).abs() <= 4 * eps * max(rows, 1)).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,dim", SHAPES)
def test_values_and_gradients_equal_torch(rows, dim, dtype):
    x, bias, grad = (random_rows(r, dim, dtype, n) for n, r in enumerate((rows, 1, rows)))
    values, of_x, of_bias = torch_results(x, bias[0], grad)
    # In place, as on the result of a matrix product.
    leaf, bias_leaf = x.clone().requires_grad_(), bias[0].clone().requires_grad_()
    before = leaf * 1
    y = bias_relu(before, bias_leaf)
    assert y.data_ptr() == before.data_ptr() and torch.equal(y.detach(), values)
    y.backward(grad)
    assert torch.equal(leaf.grad, of_x)
    close(bias_leaf.grad, of_bias, rows)


def test_row_by_hand():
    x = torch.tensor([[1.0, -2.0, 0.5], [-1.0, 3.0, float("nan")]])
    bias = torch.tensor([0.5, 1.0, -0.5], requires_grad=True)
    y = bias_relu(x, bias)
    assert y[0].tolist() == [1.5, 0, 0] and y[1, :2].tolist() == [0, 4] and y[1, 2].isnan()
    y.backward(torch.tensor([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]]))
    assert bias.grad.tolist() == [2, 11, 13]  # the gradient passes through a NaN


def test_gradients_are_identical_for_any_number_of_threads():
    x, grad = random_rows(5000, 33, torch.float32), random_rows(5000, 33, torch.float32, 1)
    gradients = []
    for n in (1, 2):
        bias = torch.zeros(33, requires_grad=True)
        with threads(n):
            bias_relu(x.clone(), bias).backward(grad)
        gradients.append(bias.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize(
    "x,bias,words",
    [
        (torch.ones(2, 3), torch.ones(2), "bias must have a value for each of the 3 columns"),
        (torch.ones(2, 3), torch.ones(3, dtype=torch.float64), "bias must be float32"),
        (torch.ones(2, 3).int(), torch.ones(3).int(), "x must be float32 or float64"),
        (torch.ones(2, 3).half(), torch.ones(3).half(), "bias must be float32"),
        (torch.ones(2, 3).bfloat16(), torch.ones(2), r"bias must be float32 \[3\]"),
        (torch.ones(6), torch.ones(6), "x must"),
        (torch.ones(3, 2).t(), torch.ones(3), "x must be contiguous"),
    ],
)
def test_bad_arguments_are_refused(x, bias, words):
    with pytest.raises(UsageError, match=words):
        bias_relu(x, bias)


def test_gradient_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match="grad must have the shape of y"):
        torch.ops.gnnbench.bias_relu_backward(torch.ones(3, 2), torch.ones(2, 3))


@pytest.fixture(scope="module")
def kernels():
    return on_host("layers", "layers")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,dim", [*SHAPES[1:], (9000, 8)])
def test_cuda_kernels_equal_torch(kernels, rows, dim, dtype):
    x, bias, grad = (random_rows(r, dim, dtype, n) for n, r in enumerate((rows, 1, rows)))
    values, of_x, of_bias = torch_results(x, bias[0], grad)
    size = [ctypes.c_int64(n) for n in (rows, dim)]
    wide = ctypes.c_int(dtype == torch.float64)
    kernels.bias_relu_of(wide, pointer(bias), *size, pointer(x))
    assert torch.equal(x, values)
    x_grad, sums = torch.full_like(x, torch.nan), torch.full_like(bias[0], torch.nan)
    kernels.bias_relu_backward_of(
        wide, pointer(grad), pointer(x), *size, pointer(x_grad), pointer(sums)
    )
    assert torch.equal(x_grad, of_x)
    close(sums, of_bias, rows)


def test_cuda_kernels_propagate_nan(kernels):
    """Also in rows that are not aligned to vectors."""
    storage = torch.full((31,), torch.nan)
    x, bias = storage[1:].view(5, 6), torch.zeros(6)
    size = [ctypes.c_int64(n) for n in (5, 6)]
    x[:4] = -1
    kernels.bias_relu_of(ctypes.c_int(0), pointer(bias), *size, pointer(x))
    assert not x[:4].any() and bool(x[4].isnan().all())


def test_narrow_rows_take_a_float32_bias():
    """By hand: 256 + 3 is rounded to the even neighbour of 258 and 260."""
    x = torch.tensor([[256.0, -1.0], [1.0, 4.0]], dtype=torch.bfloat16).requires_grad_()
    bias = torch.tensor([3.0, -2.0], requires_grad=True)
    out = bias_relu(x * 1, bias)
    assert out.dtype == torch.bfloat16
    assert out.tolist() == [[260.0, 0.0], [4.0, 2.0]]
    out.backward(torch.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=torch.bfloat16))
    assert x.grad.tolist() == [[1.0, 0.0], [100.0, 1000.0]]
    assert bias.grad.dtype == torch.float32
    assert bias.grad.tolist() == [101.0, 1000.0]
