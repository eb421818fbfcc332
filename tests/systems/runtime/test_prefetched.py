"""Prefetched epochs are the serial ones: batches, rows, losses, counts and what is looked at."""

import _thread
from dataclasses import replace

import pytest
import torch
from compose import SYSTEMS, assert_no_thread_is_left, lives, make, run, timed

from gnnbench.features.host import HostGather
from gnnbench.features.ring import RowRing
from gnnbench.features.window import BatchRows, WindowStore
from gnnbench.measure.timeline import Timeline

SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten batches
TWENTY = {**SMALL, "batch_size": 10}
STAGES = {
    "host": {},
    "cache": {"features": "cache", "features.policy": "degree", "features.ratio": 0.3},
    "optimal": {"features": "cache", "features.policy": "optimal"},
    "sieve": {"features": "cache", "features.policy": "sieve", "features.ratio": 0.3},
    "match": {"features": "match"},
    "match-over-sieve": {
        "features": "match", "features.table": "cache", "features.table.policy": "sieve",
    },
    "greedy-window-over-optimal": {
        "features": "window", "features.window": 2, "order": "greedy", "order.window": 3,
        "features.table": "cache", "features.table.policy": "optimal",
    },
    "window": {"features": "window", "features.window": 3},
    "greedy": {"order": "greedy", "order.window": 4},
    "greedy-carried-match": {
        "features": "match", "order": "greedy", "order.window": 3, "order.start": "carried",
    },
    "greedy-window": {
        "features": "window", "features.window": 2, "order": "greedy", "order.window": 3,
    },
}  # fmt: skip
DEPTHS = [1, 2, 5, 12]


def prefetch(depth=1, **settings):
    return {"schedule": "prefetch", "schedule.depth": depth, **settings}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("stages", STAGES)
def test_losses_and_counts_are_serials_bit_for_bit(stages, depth, small_graph, one_thread):
    serial = make(small_graph, settings=STAGES[stages], **SMALL)
    ahead = make(small_graph, settings=prefetch(depth, **STAGES[stages]), **SMALL)
    assert lives(serial) == lives(ahead)


def test_so_they_are_with_as_many_threads(small_graph):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        serial, ahead = (make(small_graph, settings=s) for s in ({}, prefetch(2)))
        assert lives(serial) == lives(ahead)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("until", ["memory_io", "compute"])
@pytest.mark.parametrize("stages", STAGES)
def test_it_is_looked_at_as_any_other(stages, until, small_graph, one_thread):
    settings = prefetch(3, **STAGES[stages])
    system = make(small_graph, settings=settings, until=until, **SMALL)
    serial = make(small_graph, settings=STAGES[stages], until=until, **SMALL)
    gate, right = system.check(), serial.check()
    assert gate.ok, gate.reason
    assert gate.digest == right.digest and gate.details == right.details
    assert system.glance() == serial.glance()
    for one in (system, serial):
        if one.recipe.features.foresees:
            one.foresee(5)
    timeline = Timeline.on("cpu")
    timeline.start()
    report = system.verify(5, timeline)
    timeline.stop()
    assert report.ok, report.reason
    assert report.digest == serial.verify(5, Timeline.on("cpu")).digest
    assert {s.lane for s in timeline.spans()} >= {"sample", "memory_io"}
    assert system.recheck(7) == ""
    alone, fault = system.probe([8, 9])
    assert fault == "" and set(alone) == {"sample", "memory_io", "compute"} - (
        {"compute"} if until == "memory_io" else set()
    )
    assert system.profile(11) == serial.profile(11) or "curves" in system.profile(11)
    system.close()


@pytest.mark.parametrize("stages", ["host", "match", "greedy"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_sampler_may_draw_on_a_thread(system, stages, small_graph, one_thread):
    """DGL's and PyG's own among them, before our stores and theirs."""
    settings = {} if stages == "host" else STAGES[stages]
    made = make(small_graph, system, prefetch(2, **settings), **SMALL)
    assert made.check().ok
    for epoch in range(3):
        report = run(made, epoch)
        assert report.ok, report.reason
    report = made.verify(4, Timeline.on("cpu"))
    assert report.ok, report.reason
    made.close()


def test_pygs_processes_may_be_asked_by_a_thread(small_graph, one_thread):
    settings = prefetch(2, **{"sampler.workers": 2, "sampler.extension": "torch-sparse"})
    made = make(small_graph, "pyg", settings, **SMALL)
    for epoch in range(2):
        report = run(made, epoch)
        assert report.ok, report.reason
    made.close()


@pytest.mark.parametrize("stage", ["sampler", "store", "trainer"])
def test_an_interrupt_ends_the_epoch_wherever_it_comes(stage, small_graph, one_thread):
    system = make(small_graph, settings=prefetch(), **SMALL)
    name = {"sampler": "sample", "store": "load", "trainer": "step"}[stage]
    what = getattr(system.stages, stage)
    right, calls = getattr(what, name), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            _thread.interrupt_main()
        return right(*args)

    setattr(what, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        timed(system, 0)
    assert_no_thread_is_left()
    setattr(what, name, right)
    system.audit(0)
    system.counts.clear()
    timed(system, 1)
    assert system.audit(1).ok


class OneShort(HostGather):
    """Hands out each buffer one call too early."""

    def __init__(self, job):
        super().__init__(job)
        self._ring._buffers.pop()


class OneShortLater(HostGather):
    """The same, once the gate is over: of batches as timed."""

    def load(self, batch):
        rows = super().load(batch)
        if batch.blocks[0].positions is None:
            self._ring._turn = 0
        return rows


def spoilt(store, graph, depth, **changes):
    system = make(graph, settings=prefetch(depth), **SMALL | changes)
    system.stages.store = store(system.job)
    return system


@pytest.mark.parametrize("depth", [1, 4, 9])
def test_a_buffer_reused_too_early_does_not_pass_the_gate(depth, small_graph, one_thread):
    assert spoilt(HostGather, small_graph, depth).check().ok
    assert "feature rows differ" in spoilt(OneShort, small_graph, depth).check().reason


@pytest.mark.parametrize("until", ["memory_io", "compute"])
def test_one_that_is_reused_later_is_found_when_every_batch_is_looked_at(
    until, small_graph, one_thread
):
    system = spoilt(OneShortLater, small_graph, 2, until=until)
    assert system.check().ok
    report = system.verify(3, Timeline.on("cpu"))
    assert not report.ok and "feature rows differ" in report.reason


def test_where_only_samples_are_drawn_it_is_serial(small_graph, one_thread):
    systems = [make(small_graph, settings=s, until="sample") for s in ({}, prefetch(4))]
    assert [run(s).sampled_edges for s in systems] == [run(systems[0]).sampled_edges] * 2
    assert timed(systems[1], 2).overlap == 0


class Turns(WindowStore):
    """Windows' rows in buffers that take turns, as where a GPU reads them; batches see views."""

    def __init__(self, job, window, buffers):
        super().__init__(job, HostGather(replace(job, held=1)), window)
        self._turns = RowRing(job, "cpu", buffers)
        self._turns.reserve(window * job.graph.num_nodes)  # a larger one would be other memory

    def _fetched(self, batches, announced):
        right = super()._fetched(batches, announced)
        rows = torch.cat([right.rows(nth) for nth in range(len(batches))])
        return BatchRows(self._turns.rows(len(rows)).copy_(rows), batches)


@pytest.mark.parametrize(
    "window,depth,buffers", [(8, 0, 2), (8, 1, 2), (3, 3, 2), (3, 4, 3), (2, 5, 4), (1, 3, 4)]
)
def test_memory_of_a_window_is_not_anothers_while_its_rows_are_held(
    window, depth, buffers, small_graph, one_thread
):
    """With as many buffers as an epoch needs all is well, its last window a short one or not."""
    settings = prefetch(depth, **{"features": "window", "features.window": window})
    system = make(small_graph, settings=settings, **TWENTY)
    assert system.check().ok
    system.stages.store = Turns(system.job, window, buffers)
    assert system.check().ok
    system.stages.store = Turns(system.job, window, buffers - 1)
    assert "feature rows differ" in system.check().reason


class Places(WindowStore):
    """Right rows of a window's first batches, others of those behind."""

    def __init__(self, job, window, right):
        super().__init__(job, HostGather(job), window)
        self._right = right
        self.windows = []

    def _fetched(self, batches, announced):
        found = super()._fetched(batches, announced)
        self.windows.append(len(batches))
        parts = [found.rows(nth) + (nth >= self._right) for nth in range(len(batches))]
        return BatchRows(torch.cat(parts), batches)


@pytest.mark.parametrize("depth", [None, 0, 2])
@pytest.mark.parametrize("right", range(9))
def test_the_gate_looks_at_every_place_of_a_window(right, depth, small_graph, one_thread):
    settings = {"features": "window", "features.window": 8}
    settings = settings if depth is None else prefetch(depth, **settings)
    system = make(small_graph, settings=settings, **TWENTY)
    system.stages.store = Places(system.job, 8, right)
    report = system.check()
    assert report.ok == (right == 8) and ("feature rows differ" in report.reason) == (right < 8)


@pytest.mark.parametrize("size,epochs", [(100, [2, 2, 1]), (200, [1] * 5), (50, [4, 1])])
def test_of_a_short_epoch_the_gate_asks_for_no_longer_window(size, epochs, small_graph, one_thread):
    """Five batches of few, which an epoch's are gone through again for."""
    settings = {"features": "window", "features.window": 8}
    system = make(small_graph, settings=settings, batch_size=size, fanouts=(3, 2))
    system.stages.store = Places(system.job, 8, 8)
    system.stages.store.windows = windows = []
    assert system.check().ok
    assert windows[: len(epochs)] == epochs
