"""The alternate schedule on a GPU: stored samples are unchanged, in host or device memory."""

import pytest
import torch
from compose import counted, make, run, without_times

from gnnbench.measure.timeline import STREAM, Timeline
from gnnbench.pipelines.alternating_phases import StoredSamples

pytestmark = pytest.mark.gpu

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches
LATE = 2_000_000  # cycles, about a millisecond: longer than any phase of a small batch
STORED = ["host", "gpu"]
WINDOW = ("features", "window_bytes", "")
STAGES = {
    "uva": {"features": "uva"},
    "gnnlab": {"sampler": "gnnlab", "features": "cache", "features.ratio": 0.3},
    "fused-match": {"sampler": "fused-map", "features": "match", "order": "greedy",
                    "order.window": 3},
    "window": {"features": "window", "features.window": 3},
}  # fmt: skip


def alternate(stored, batches=0, depth=0, **settings):
    return {
        "schedule": "alternate", "schedule.stored": stored, "schedule.batches": batches,
        "schedule.depth": depth, **settings,
    }  # fmt: skip


def tensors(batch):
    """Copies of all tensors of a batch, made in stream order."""
    return [t.clone() for t in (batch.seeds, *batch.tensors())]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("sampler", ["hop-by-hop", "gnnlab", "fused-map", "fastsample"])
def test_stored_samples_are_unchanged(sampler, stored, late, small_graph):
    """Also if sampler and copies are delayed, and the sample's memory is allocated again."""
    system = make(small_graph, settings={"sampler": sampler}, until="sample", **SMALL)
    seeds = system.order.batches(0, "cuda")
    seeds = [s.to(small_graph.indices.dtype) for s in seeds]
    right = []
    waiting = StoredSamples(system.job, stored == "host")
    for number, few in enumerate(seeds):
        if late:
            torch.cuda._sleep(LATE)
        batch = system.stages.sampler.sample(few, 0, number)
        right.append(tensors(batch))
        waiting.put(batch)
        del batch
        # memory freed by the batch is allocated again and written, in stream order
        torch.full((1 << 16,), -1, device="cuda")
    for number, few in enumerate(seeds):
        batch = waiting.sample(few, 0, number)
        assert batch.number == number and batch.input_nodes.is_cuda
        pairs = zip(tensors(batch), right[number], strict=True)
        assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
    system.close()


@pytest.mark.parametrize("batches,depth", [(0, 0), (4, 0), (0, 1), (4, 2)])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("stages", STAGES)
def test_losses_and_counts_equal_the_serial_schedule(
    stages, stored, batches, depth, small_graph, one_thread
):
    """Some samplers number nodes in any order, which changes the order of sums."""
    actual = []
    for settings in (STAGES[stages], alternate(stored, batches, depth, **STAGES[stages])):
        system = make(small_graph, settings=settings, **SMALL)
        assert system.check().ok
        reports = [run(system, epoch) for epoch in range(4)]
        assert all(r.ok for r in reports), [r.reason for r in reports]
        verified = system.verify(9, Timeline.on("cuda"))
        assert verified.ok, verified.reason
        actual.append((reports, verified.digest))
        assert system.recheck(11) == ""
        system.close()
    (serial, one), (turns, other) = actual
    assert one == other
    where = "host" if stored == "host" else "device"
    for right, report in zip(serial, turns, strict=True):
        assert report.loss == pytest.approx(right.loss, rel=1e-4)
        assert report.unique_nodes == right.unique_nodes
        counts = counted(report)
        own = [counts.pop(("schedule", n, where)) for n in ("stored_bytes", "stored_most_bytes")]
        assert own[0] >= own[1] > 0 and (batches or own[0] == own[1])
        others = counted(right)
        if depth:  # windows then lie in more buffers, each of which grows with its contents
            assert (counts.pop(WINDOW, 0) > 0) is (others.pop(WINDOW, 0) > 0)
        assert without_times(counts) == without_times(others)


@pytest.mark.parametrize("stored", STORED)
def test_each_round_samples_first_on_one_lane(stored, small_graph, one_thread):
    system = make(small_graph, settings=alternate(stored, 5, features="uva"), **SMALL)
    timeline = Timeline.on("cuda")
    timeline.start()
    system.run_epoch(0, timeline)
    timeline.stop()
    system.audit(0)
    spans = sorted(timeline.spans(), key=lambda s: s.begin)
    assert {s.lane for s in spans} == {STREAM}
    turn = ["sample"] * 5 + ["sample", "memory_io", "compute"] * 5
    assert [s.phase for s in spans] == turn * 2
    assert timeline.sweep().overlap == 0
    system.close()


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("stored", STORED)
def test_memory_is_constant_across_epochs(stored, depth, small_graph, one_thread):
    settings = alternate(stored, depth=depth, features="uva")
    system = make(small_graph, settings=settings, **SMALL)
    actual = []
    for _ in range(6):
        assert run(system, 3).ok
        actual.append(torch.cuda.memory_allocated())
    assert len(set(actual[2:])) == 1
    system.close()


@pytest.mark.parametrize("stored", STORED)
def test_automatic_cache_uses_the_remaining_memory(stored, small_graph, one_thread):
    settings = {"features.ratio": "auto", "schedule.stored": stored}
    system = make(small_graph, "gnnlab", settings, **SMALL)
    by_name = {name: value for _, name, _, value in system.setup_counts}
    assert by_name["cache_ratio"] == 1.0 and by_name["uncached_peak_bytes"] > 0
    assert system.check().ok and run(system).ok
    system.close()


@pytest.mark.parametrize("name", ["best", "fastgl", "gnnadvisor", "gnnlab", "pagraph", "tsota"])
def test_every_system_passes_the_gate_and_runs(name, small_graph, one_thread):
    system = make(small_graph, name, **SMALL)
    gate = system.check()
    assert gate.ok and gate.verified, gate.reason
    for epoch in range(3):
        report = run(system, epoch)
        assert report.ok, report.reason
    assert system.verify(5, Timeline.on("cuda")).ok
    assert system.recheck(7) == ""
    system.close()
