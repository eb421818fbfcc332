"""The serial schedule and its clock: spans, order of calls, losses."""

import time

import pytest
import torch
from gnnbench.stages.clock import PHASES, HostClock, clock_for

from gnnbench import rng
from gnnbench.stages.order import AsDrawn
from gnnbench.stages.schedule import run_sampling, run_serial


def test_phases_are_spans_inside_the_wall():
    clock = HostClock()
    clock.start()
    time.sleep(0.01)
    clock.mark()  # of no phase
    time.sleep(0.02)
    clock.mark("sample")
    clock.mark("memory_io")
    time.sleep(0.01)
    clock.mark("sample")
    wall, phases = clock.stop()
    assert tuple(phases) == PHASES
    assert phases["sample"] >= 0.03 and phases["compute"] == 0
    assert wall >= sum(phases.values()) + 0.01


def test_a_clock_starts_anew():
    clock = HostClock()
    walls = []
    for pause in (0.05, 0.001):
        clock.start()
        time.sleep(pause)
        clock.mark("compute")
        wall, phases = clock.stop()
        assert pause <= phases["compute"] <= wall
        walls.append(wall)
    assert walls[0] >= 0.05


def test_batches_go_one_after_the_other():
    calls = []
    losses = iter([1.5, 0.25])

    def compute(x):
        calls.append(("compute", int(x)))
        return torch.tensor(next(losses))

    trace = run_serial(
        batches=lambda: [torch.tensor([3]), torch.tensor([5])],
        sample=lambda seeds, nth: calls.append(("sample", nth)) or int(seeds),
        load=lambda drawn: calls.append(("load", drawn)) or drawn * 10,
        compute=compute,
        keep=lambda drawn: drawn,
    )
    assert calls == [
        ("sample", 0), ("load", 3), ("compute", 30), ("sample", 1), ("load", 5), ("compute", 50),
    ]  # fmt: skip
    assert trace.losses == [1.5, 0.25] and trace.kept == [3, 5]
    assert 0 <= sum(trace.phases_s.values()) <= trace.wall_s


def test_no_batches():
    trace = run_serial(list, lambda s, n: s, lambda s: s, lambda x: x, lambda s: s)
    assert trace.losses == [] and trace.kept == []


def test_clock_of_the_cpu():
    assert isinstance(clock_for("cpu"), HostClock)


@pytest.mark.gpu
def test_events_measure_the_device_and_not_the_calls():
    x = torch.randn(4096, 4096, device="cuda")
    clock = clock_for("cuda")
    for _ in range(2):  # the first time kernels are loaded
        clock.start()
        time.sleep(0.02)
        clock.mark()
        for _ in range(200):
            x = (x @ x).clamp(-1, 1)  # returns at once, works for hundreds of milliseconds
        clock.mark("compute")
        time.sleep(0.005)
        clock.mark("sample")
        wall, phases = clock.stop()
    assert phases["compute"] > 0.05
    assert phases["memory_io"] == 0
    assert phases["sample"] < 0.004  # the host slept while the device still worked
    assert wall >= 0.02 + phases["compute"]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 1000, 200_000])
def test_orders_are_the_same_on_every_device(n):
    key = rng.key(5, 2, "batch-order")
    assert torch.equal(rng.permutation(n, key, "cuda").cpu(), rng.permutation(n, key))
    order = AsDrawn(torch.arange(n) * 3, 64, seed=1, max_batches=3)
    for here, there in zip(order.batches(4), order.batches(4, "cuda"), strict=True):
        assert there.is_cuda and torch.equal(there.cpu(), here)


def test_sampling_alone_is_timed_without_the_batch_order():
    seeds = [torch.arange(3), torch.arange(2)]
    seen = []

    def batches():
        time.sleep(0.03)
        return seeds

    def sample(batch, number):
        time.sleep(0.01)
        seen.append((batch.numel(), number))
        return [number] * 4

    trace = run_sampling(batches, sample, sum, torch.device("cpu"))
    assert seen == [(3, 0), (2, 1)] and trace.kept == [0, 4]
    assert set(trace.phases_s) == {"sample"} and trace.losses == []
    assert trace.phases_s["sample"] >= 0.02
    assert trace.wall_s >= trace.phases_s["sample"] + 0.03
    assert trace.device_s is None
