"""The batch order on a GPU equals that of the CPU."""

import pytest
import torch
from compose import make, run

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


@pytest.mark.gpu
def test_batches_that_wait_on_the_host_train_the_same_in_less_memory(small_graph):
    losses, peaks = {}, {}
    for waiting in ("device", "host"):
        settings = {
            "order": "greedy", "order.window": 16, "order.waiting": waiting, "features": "match",
        }  # fmt: skip
        before = torch.cuda.memory_allocated()
        system = make(small_graph, settings=settings, device="cuda")
        report = system.check()
        assert report.ok, report.reason
        losses[waiting] = [run(system, epoch).loss for epoch in range(2)]
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        assert run(system, 2).ok
        peaks[waiting] = torch.cuda.max_memory_allocated() - before
        system.close()
    assert losses["device"] == pytest.approx(losses["host"], rel=1e-4)
    assert peaks["host"] < peaks["device"]
