"""The prefetch schedule on its streams: rows at the time of use, losses, spans and memory."""

import random

import pytest
import torch
from compose import counted, make, run

from gnnbench.measure.timeline import STREAM, Timeline
from gnnbench.pipelines import streams

pytestmark = pytest.mark.gpu

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches
LATE = 2_000_000  # cycles, about a millisecond: longer than any phase of a small batch
STORES = {
    "host": {"features": "host"},
    "uva": {"features": "uva"},
    "gpu": {"features": "gpu"},
    "cache-host": {
        "features": "cache", "features.policy": "degree", "features.ratio": 0.3,
        "features.table": "host",
    },
    "cache-uva": {
        "features": "cache", "features.policy": "degree", "features.ratio": 0.3,
        "features.table": "uva",
    },
    "match-host": {"features": "match", "features.table": "host"},
    "match-uva": {"features": "match", "features.table": "uva"},
    "window-host": {"features": "window", "features.window": 3, "features.table": "host"},
    "window-uva": {"features": "window", "features.window": 3, "features.table": "uva"},
}  # fmt: skip
GREEDY = {"order": "greedy", "order.window": 4}
SAMPLERS = ["hop-by-hop", "fused-map", "fastsample", "gnnlab", "pgsampler"]


def prefetch(depth, **settings):
    return {"schedule": "prefetch", "schedule.depth": depth, **settings}


def delay():
    torch.cuda._sleep(LATE)


class WatchedSystem:
    """A system with delayed phases on their streams, whose rows are compared on the device.

    The results stay on the device until the epoch ends, so that nothing synchronizes.
    """

    def __init__(self, system, late, chance=0.3):
        self.system, self._late, self._random = system, late, random.Random(5)
        self._chance, self.wrong = chance, []
        self._table = system.graph.features.to("cuda")
        stages = system.stages
        stages.sampler.sample = self._after("sample", stages.sampler.sample)
        stages.store.load = self._after("load", stages.store.load)
        self._step, stages.trainer = stages.trainer.step, self

    def _after(self, phase, right):
        def call(*args):
            self._dawdle(phase)
            return right(*args)

        return call

    def _dawdle(self, phase):
        if phase in self._late and self._random.random() < self._chance:
            delay()

    def step(self, batch, rows):
        """Delay, compare, delay again before the rows are used, and compare once more."""
        self._dawdle("step")
        self._look(batch, rows)
        self._step(batch, rows)
        self._dawdle("step")
        self._look(batch, rows)

    def _look(self, batch, rows):
        right = self._table[batch.input_nodes.long()]
        self.wrong.append((rows.view(torch.int32) != right.view(torch.int32)).any())

    def num_wrong(self):
        torch.cuda.synchronize()
        return int(torch.stack(self.wrong).sum())


@pytest.mark.parametrize("late", ["load", "step", "all"])
@pytest.mark.parametrize("order,depth", [({}, 1), (GREEDY, 3)], ids=["drawn", "greedy"])
@pytest.mark.parametrize("store", STORES)
def test_rows_are_correct_when_read_with_any_delays(
    store, order, depth, late, small_graph, one_thread
):
    system = make(small_graph, settings=prefetch(depth, **STORES[store], **order), **SMALL)
    assert system.check().ok
    watched = WatchedSystem(system, ("sample", "load", "step") if late == "all" else (late,))
    epochs = 20 if late == "all" else 4  # of ten batches
    for epoch in range(epochs):
        report = run(system, epoch)
        assert report.ok, report.reason
    assert len(watched.wrong) == 2 * epochs * 10 and watched.num_wrong() == 0
    system.close()


def test_buffer_overwritten_too_early_is_detected(small_graph, one_thread):
    """The same comparison detects a store with one buffer too few."""
    system = make(small_graph, settings=prefetch(1, **STORES["cache-host"]), **SMALL)
    system.stages.store._ring._buffers.pop()
    watched = WatchedSystem(system, ("step",), chance=1.0)
    try:
        run(system, 3)
    except RuntimeError as fault:  # torch detects it too if the write is enqueued early enough
        assert "modified by an inplace operation" in str(fault)
    else:
        assert watched.num_wrong() > 0
    system.close()
    system = make(small_graph, settings=prefetch(1, **STORES["cache-host"]), **SMALL)
    system.stages.store._ring._buffers.pop()
    assert "feature rows differ" in system.check().reason
    system.close()


@pytest.mark.parametrize("first,priorities", [("link", [-2, -1]), ("even", [0, 0])])
def test_memory_io_stream_has_priority_or_none_has(first, priorities):
    sides = [
        streams.side_stream(torch.device("cuda"), name, first) for name in ("memory_io", "sample")
    ]
    assert [side._stream.priority for side in sides] == priorities
    assert streams.current_stream(torch.device("cuda"))._stream.priority == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("depth", [1, 4])
def test_losses_equal_the_serial_schedule(sampler, depth, small_graph, one_thread):
    """Some samplers number nodes in any order, which changes the order of sums."""
    actual = []
    for settings in ({}, prefetch(depth)):
        system = make(small_graph, settings={"sampler": sampler, **settings}, **SMALL)
        assert system.check().ok
        reports = [run(system, epoch) for epoch in range(4)]
        assert all(r.ok for r in reports), [r.reason for r in reports]
        verified = system.verify(9, Timeline.on("cuda"))
        assert verified.ok, verified.reason
        actual.append((reports, verified.digest))
        assert system.recheck(11) == ""
        system.close()
    (serial, one), (ahead, other) = actual
    assert one == other
    for right, report in zip(serial, ahead, strict=True):
        assert report.loss == pytest.approx(right.loss, rel=1e-4)
        assert counted(report) == counted(right)
        assert report.unique_nodes == right.unique_nodes


def test_phases_of_different_batches_overlap_on_separate_lanes(small_graph, one_thread):
    system = make(small_graph, settings=prefetch(1, features="uva"), **SMALL)
    WatchedSystem(system, ("sample", "load", "step"), chance=1.0)
    timeline = Timeline.on("cuda")
    for epoch in range(2):
        timeline.start()
        system.run_epoch(epoch, timeline)
        timeline.stop()
        system.audit(epoch)
    sweep = timeline.sweep()
    assert sweep.wall == pytest.approx(sweep.idle + sweep.overlap + sum(sweep.alone.values()))
    assert {(s.phase, s.lane) for s in timeline.spans()} == {
        ("sample", "sample"), ("memory_io", "memory_io"), ("compute", STREAM),
    }  # fmt: skip
    assert sweep.overlap > sweep.wall / 4  # each phase is a delay, about as long as the others
    for phase in ("sample", "memory_io", "compute"):
        spans = sorted(s for s in timeline.spans() if s.phase == phase)
        assert all(timeline.begin <= s.begin <= s.end <= timeline.end + 1e-6 for s in spans)
    # Rows of a batch are loaded after its nodes are sampled, and used after they are loaded.
    at = {(s.phase, s.batch): s for s in timeline.spans()}
    for number in range(10):
        assert at["sample", number].end <= at["memory_io", number].begin + 1e-6
        assert at["memory_io", number].end <= at["compute", number].begin + 1e-6
        if number >= 2:  # two results are alive
            assert at["compute", number - 2].end <= at["memory_io", number].begin + 1e-6
    system.close()


@pytest.mark.parametrize("store", ["uva", "cache-host", "match-uva", "window-uva"])
def test_memory_is_constant_across_epochs(store, small_graph, one_thread):
    system = make(small_graph, settings=prefetch(2, **STORES[store]), **SMALL)
    actual = []
    for _ in range(6):
        assert run(system, 3).ok
        actual.append(torch.cuda.memory_allocated())
    assert len(set(actual[2:])) == 1
    system.close()


@pytest.mark.parametrize("stage", ["sampler", "store", "trainer"])
def test_error_ends_the_epoch_and_the_next_epoch_works(stage, small_graph, one_thread):
    system = make(small_graph, settings=prefetch(2, features="uva"), **SMALL)
    name = {"sampler": "sample", "store": "load", "trainer": "step"}[stage]
    what = getattr(system.stages, stage)
    right, calls, error = getattr(what, name), [], ValueError("mine")

    def broken(*args):
        calls.append(args)
        if len(calls) == 5:
            raise error
        return right(*args)

    setattr(what, name, broken)
    with pytest.raises(ValueError, match="mine") as raised:
        system.run_epoch(0, Timeline.on("cuda"))
    assert raised.value is error
    setattr(what, name, right)
    system.audit(0)
    for epoch in range(3):
        assert run(system, epoch).ok
    system.close()


@pytest.mark.parametrize("system", ["dgl", "graphbolt", "pyg"])
def test_foreign_samplers_run_in_a_thread(system, small_graph, one_thread):
    made = make(small_graph, system, prefetch(2), **SMALL)
    assert made.check().ok
    for epoch in range(5):
        report = run(made, epoch)
        assert report.ok, report.reason
    verified = made.verify(7, Timeline.on("cuda"))
    assert verified.ok, verified.reason
    made.close()
