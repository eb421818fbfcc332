"""Dropout compared with its definition by the reference generator; CUDA kernels run on the host."""

import ctypes

import pytest
import torch
from ops_on_host import on_host, pointer
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels.dropout import Masks, dropout
from gnnbench.kernels.reference import rng

SHAPES = [(0, 3), (1, 1), (5, 47), (700, 64), (1025, 7), (130, 200), (2, 2101)]
DTYPES = [torch.float32, torch.float64]
KEY, BATCH, LAYER = (1 << 62) + 12345, (1 << 32) - 3, 2


def inputs(rows, dim, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, dim, generator=generator, dtype=dtype)
    nodes = torch.randint(0, 1 << 48, (rows,), generator=generator)
    return x, nodes


def kept(nodes, dim, p, layer=LAYER):
    """The mask by the reference: draw i of the vertex is at least p * 2^32."""
    draws = rng.draws(KEY, nodes.long().numpy(), layer, BATCH, dim)
    return torch.from_numpy(draws.astype("int64")) >= round(p * 2**32)


def right(x, nodes, p):
    return torch.where(kept(nodes, x.shape[1], p), x * (1 / (1 - p)), 0.0)


@pytest.mark.parametrize("p", [0.0, 0.5, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,dim", SHAPES)
def test_values_and_gradients_equal_the_reference(rows, dim, dtype, p):
    x, nodes = inputs(rows, dim, dtype)
    grad, _ = inputs(rows, dim, dtype, 1)
    leaf = x.clone().requires_grad_()
    out = dropout(leaf, Masks(nodes, p, KEY, BATCH), LAYER)
    assert torch.equal(out.detach(), right(x, nodes, p))
    out.backward(grad)
    assert torch.equal(leaf.grad, right(grad, nodes, p))


def test_masks_by_hand():
    """Words of the generator for vertex 7, layer 1, batch 3, key 9; 2^31 is half of their range."""
    words = rng.philox(9, (0, 7, 1 << 16, 3)) + rng.philox(9, (1, 7, 1 << 16, 3))
    x = torch.arange(1.0, 9.0).view(1, 8)
    out = dropout(x, Masks(torch.tensor([7], dtype=torch.int32), 0.5, 9, 3), 1)
    assert out.tolist() == [
        [2 * v if w >= 1 << 31 else 0 for v, w in zip(x[0], words, strict=True)]
    ]


def test_mask_belongs_to_the_vertex_whatever_the_rows():
    """In any order, among fewer rows, of either id dtype, and with key and batch in a tensor."""
    x = torch.ones(50, 9)
    nodes = torch.randperm(1000, generator=torch.Generator().manual_seed(2))[:50]
    expected = dropout(x, Masks(nodes, 0.5, KEY, BATCH), LAYER)
    order = torch.arange(49, 9, -1)
    for some in (nodes[order], nodes[order].int()):
        assert torch.equal(dropout(x[:40], Masks(some, 0.5, KEY, BATCH), LAYER), expected[order])
    longer = Masks(torch.cat([nodes, nodes]), 0.5, place=torch.tensor([KEY, BATCH]))
    assert torch.equal(dropout(x, longer, LAYER), expected)


@pytest.mark.parametrize(
    "other", [Masks(torch.arange(64), 0.5, 2, 1), Masks(torch.arange(64), 0.5, 1, 2)]
)
def test_masks_of_epochs_batches_and_layers_are_independent(other):
    x, masks = torch.ones(64, 64), Masks(torch.arange(64), 0.5, 1, 1)
    one = dropout(x, masks, 0) > 0
    for mask in (dropout(x, other, 0) > 0, dropout(x, masks, 1) > 0):
        equal = float((one == mask).double().mean())
        assert abs(equal - 0.5) < 6 * 0.5 / 64  # six standard deviations


def test_share_of_zeros_is_p():
    x = torch.ones(1000, 100)
    for p in (0.1, 0.5, 0.9):
        out = dropout(x, Masks(torch.arange(1000), p, 5), 0)
        zeros = float((out == 0).double().mean())
        assert abs(zeros - p) < 6 * (p * (1 - p) / x.numel()) ** 0.5
        assert out[out > 0].unique().tolist() == pytest.approx([1 / (1 - p)])


def test_results_are_identical_for_any_number_of_threads():
    x, nodes = inputs(5000, 33, torch.float32)
    results = []
    for n in (1, 2):
        with threads(n):
            results.append(dropout(x, Masks(nodes, 0.5, 1), 0))
    assert torch.equal(*results)


def test_dropped_values_are_zero_even_if_they_are_not_finite():
    out = dropout(torch.full((40, 8), torch.nan), Masks(torch.arange(40), 0.5, 1), 0)
    assert set(out.isnan().flatten().tolist()) == {True, False} and not out.nan_to_num().any()


@pytest.mark.parametrize(
    "x,nodes,p,words",
    [
        (torch.ones(2, 3), torch.arange(2), 1.0, "p must be at least 0 and below 1"),
        (torch.ones(2, 3), torch.arange(2), float("nan"), "p must be at least 0 and below 1"),
        (torch.ones(2, 3), torch.arange(1), 0.5, "nodes must have one row for each of the 2"),
        (torch.ones(2, 3), torch.ones(2), 0.5, "nodes must be int32 or int64"),
        (torch.ones(2, 3).int(), torch.arange(2), 0.5, "x must be float32 or float64"),
    ],
)
def test_bad_arguments_are_refused(x, nodes, p, words):
    with pytest.raises(UsageError, match=words):
        dropout(x, Masks(nodes, p), 0)


@pytest.mark.parametrize(
    "batch,layer,place,words",
    [
        (-1, 0, None, "batch must be 0 to"),
        (1 << 32, 0, None, "batch must be 0 to"),
        (0, 1 << 16, None, "layer must be 0 to 65535"),
        (0, 0, torch.zeros(1, dtype=torch.int64), "place must hold key and batch"),
        (0, 0, torch.zeros(2), "place must be int64"),
    ],
)
def test_bad_places_are_refused(batch, layer, place, words):
    masks = Masks(torch.arange(2), 0.5, 0, batch, place)
    with pytest.raises(UsageError, match=words):
        dropout(torch.ones(2, 3), masks, layer)


@pytest.fixture(scope="module")
def kernels():
    return on_host("layers", "layers")


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows,dim", SHAPES[1:])
def test_cuda_kernel_equals_the_reference(kernels, rows, dim, dtype, in_memory):
    x, nodes = inputs(rows, dim, dtype)
    out = torch.full_like(x, torch.nan)
    place = torch.tensor([KEY, BATCH])
    key, batch = (0, 0) if in_memory else (KEY, BATCH)
    kernels.dropout_of(
        ctypes.c_int(dtype == torch.float64), pointer(x), pointer(nodes), ctypes.c_int64(rows),
        ctypes.c_int64(dim), ctypes.c_uint64(key), ctypes.c_uint32(batch),
        pointer(place) if in_memory else None, ctypes.c_uint32(LAYER), ctypes.c_uint32(1 << 31),
        ctypes.c_double(2), pointer(out),
    )  # fmt: skip
    assert torch.equal(out, right(x, nodes, 0.5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_rows_have_the_masks_of_float32(dtype):
    x, masks = torch.full((50, 9), 3.0), Masks(torch.arange(50), 0.5, KEY, BATCH)
    leaf = x.to(dtype).requires_grad_()
    out = dropout(leaf, masks, LAYER)
    assert out.dtype == dtype
    assert torch.equal(out.float(), dropout(x, masks, LAYER))
    assert set(out.flatten().tolist()) == {0.0, 6.0}
    out.sum().backward()
    assert leaf.grad.dtype == dtype
    assert torch.equal(leaf.grad * 3, out.detach())
