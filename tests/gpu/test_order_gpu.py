"""The batch order on a GPU equals that of the CPU."""

import pytest
import torch

from gnnbench.kernels import rng
from gnnbench.pipelines.order import Permuted


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 1000, 200_000])
def test_order_is_equal_on_every_device(n):
    key = rng.key(5, 2, "batch-order")
    assert torch.equal(rng.permutation(n, key, "cuda").cpu(), rng.permutation(n, key))
    order = Permuted(torch.arange(n) * 3, 64, seed=1, max_batches=3)
    for here, there in zip(order.batches(4), order.batches(4, "cuda"), strict=True):
        assert there.is_cuda and torch.equal(there.cpu(), here)
