"""Weights of edges by the degrees of both ends, by hand."""

import ctypes

import pytest
import torch
from ops_on_host import on_host
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.symmetric import symmetric_factors, symmetric_weights


def block(indptr, indices, num_src):
    indptr, indices = (torch.tensor(t, dtype=torch.int32) for t in (indptr, indices))
    return Block(indptr, indices, torch.arange(num_src), indptr.numel() - 1)


# Destination 1 has no edge, source 1 none; the edge from 3 to 2 is there twice.
ONE = block([0, 2, 2, 6], [0, 3, 2, 3, 3, 4], 5)


def test_weights_by_hand():
    source, destination = symmetric_factors(ONE)
    torch.testing.assert_close(source, torch.tensor([1, 1, 1, 3**-0.5, 1]))
    torch.testing.assert_close(destination, torch.tensor([2**-0.5, 1, 0.5]))
    weights = symmetric_weights(ONE)
    expected = [2**-0.5, 6**-0.5, 0.5, 12**-0.5, 12**-0.5, 0.5]
    torch.testing.assert_close(weights, torch.tensor(expected))
    assert weights.dtype == torch.float32


def test_block_keeps_its_weights_and_a_copy_makes_them_again():
    first = symmetric_weights(ONE)
    assert symmetric_weights(ONE) is first
    assert torch.equal(symmetric_weights(ONE.to("cpu")), first)
    assert symmetric_weights(ONE.to("cpu")) is not first


@pytest.mark.parametrize("rows", [0, 3])
def test_block_without_edges(rows):
    assert symmetric_weights(block([0] * (rows + 1), [], rows)).shape == (0,)


def large():
    """300 destinations of 0 to 40 edges, to few sources and to many."""
    draws = torch.Generator().manual_seed(3)
    degrees = torch.randint(0, 41, (300,), generator=draws)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    ends = (torch.rand(int(indptr[-1]), generator=draws) ** 4 * 5000).long()
    return block(indptr.tolist(), ends.tolist(), 5000)


def right(one):
    """The weights in float64."""
    source = torch.bincount(one.indices, minlength=one.num_src)[one.indices.long()]
    destination = one.indptr.diff().repeat_interleave(one.indptr.diff().long())
    return 1 / (source * destination).double().sqrt()


def test_weights_equal_the_definition_for_any_number_of_threads():
    results = []
    for n in (1, 2):
        with threads(n):
            results.append(symmetric_weights(large()))
    assert torch.equal(*results)
    torch.testing.assert_close(results[0].double(), right(large()), rtol=2e-7, atol=0)


def test_factors_multiply_to_the_weights():
    one = large()
    source, destination = symmetric_factors(one)
    rows = torch.repeat_interleave(torch.arange(one.num_dst), one.indptr.diff().long())
    product = source[one.indices.long()] * destination[rows]
    torch.testing.assert_close(product, symmetric_weights(one), rtol=5e-7, atol=0)


def test_broken_blocks_are_refused():
    with pytest.raises(UsageError, match="indices holds 5 at position 1"):
        symmetric_weights(block([0, 2], [0, 5], 5))
    with pytest.raises(UsageError, match="indptr must start at 0"):
        symmetric_weights(block([0, 1], [0, 1], 5))


@pytest.mark.parametrize("one", [ONE, large()])
def test_cuda_kernels_equal_the_cpu_bit_by_bit(one):
    kernels = on_host("aggregate", "symmetric", "symmetric")
    out = torch.full((one.num_edges,), torch.nan)
    counts = torch.full((one.num_src,), -7, dtype=torch.int32)
    sizes = [ctypes.c_int64(n) for n in (one.num_edges, one.num_src, one.num_dst)]
    kernels.symmetric_weights_of(
        *(ctypes.c_void_p(t.data_ptr()) for t in (one.indptr, one.indices)), *sizes,
        *(ctypes.c_void_p(t.data_ptr()) for t in (counts, out)),
    )  # fmt: skip
    assert torch.equal(out, symmetric_weights(one.to("cpu")))
