"""Weights of edges by degrees on a GPU: the bits of the CPU."""

import pytest
import torch

from gnnbench.core.minibatch import Block
from gnnbench.kernels.symmetric import symmetric_factors, symmetric_weights

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "num_dst,num_src,most", [(0, 5, 3), (1, 1, 1), (8000, 9000, 15), (9, 60, 9999)]
)
def test_weights_equal_the_cpu_bit_by_bit(num_dst, num_src, most):
    draws = torch.Generator().manual_seed(num_dst)
    degrees = torch.randint(0, most + 1, (num_dst,), generator=draws)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)]).int()
    ends = (torch.rand(int(indptr[-1]), generator=draws) ** 4 * num_src).int()
    block = Block(indptr, ends, torch.arange(num_src), num_dst)
    on_gpu = block.to("cuda")
    assert torch.equal(symmetric_weights(on_gpu).cpu(), symmetric_weights(block))
    for own, right in zip(symmetric_factors(on_gpu), symmetric_factors(block), strict=True):
        torch.testing.assert_close(own.cpu(), right, rtol=3e-7, atol=0)
