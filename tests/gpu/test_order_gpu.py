"""The clock and the batch order of a GPU."""

import time

import pytest
import torch

from gnnbench import rng
from gnnbench.measure.timeline import STREAM, Timeline
from gnnbench.stages.order import Permuted


@pytest.mark.gpu
def test_events_measure_the_device_and_not_the_calls():
    x = torch.randn(4096, 4096, device="cuda")
    timeline = Timeline.on("cuda")
    for _ in range(2):  # the first time kernels are loaded
        timeline.start()
        time.sleep(0.02)
        with timeline.span("compute", 0):
            for _ in range(200):
                x = (x @ x).clamp(-1, 1)  # returns at once, works for hundreds of milliseconds
        with timeline.span("sample", 1):
            time.sleep(0.005)
        timeline.stop()
    found = timeline.sweep()
    assert found.busy["compute"] > 0.05
    assert found.busy["sample"] < 0.004  # the host slept while the device still worked
    assert found.wall >= 0.02 + found.busy["compute"]
    assert found.overlap == 0 and {s.lane for s in timeline.spans()} == {STREAM}


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 1000, 200_000])
def test_orders_are_the_same_on_every_device(n):
    key = rng.key(5, 2, "batch-order")
    assert torch.equal(rng.permutation(n, key, "cuda").cpu(), rng.permutation(n, key))
    order = Permuted(torch.arange(n) * 3, 64, seed=1, max_batches=3)
    for here, there in zip(order.batches(4), order.batches(4, "cuda"), strict=True):
        assert there.is_cuda and torch.equal(there.cpu(), here)
