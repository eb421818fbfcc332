"""Prefetched epochs equal serial ones: batches, rows, losses, counts and checks."""

import _thread
import gc
from dataclasses import replace

import pytest
import torch
from compose import SYSTEMS, assert_no_thread_is_left, make, run, run_epochs, timed, verify_timed

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
# Every stage at two depths, every depth with several stages.
DEPTHS = [(1, 5), (2, 12)]
AHEAD = [(name, DEPTHS[nth % 2]) for nth, name in enumerate(STAGES)]


def prefetch(depth=1, **settings):
    return {"schedule": "prefetch", "schedule.depth": depth, **settings}


@pytest.fixture
def no_collection():
    """No destructor of garbage runs, in which an interrupt would be lost."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("stages,depths", AHEAD)
def test_losses_and_counts_equal_serial_ones(stages, depths, small_graph, one_thread):
    serial = run_epochs(make(small_graph, settings=STAGES[stages], **SMALL))
    for depth in depths:
        ahead = make(small_graph, settings=prefetch(depth, **STAGES[stages]), **SMALL)
        assert run_epochs(ahead) == serial, depth


def test_they_are_equal_with_two_threads(small_graph):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        serial, ahead = (make(small_graph, settings=s) for s in ({}, prefetch(2)))
        assert run_epochs(serial) == run_epochs(ahead)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "stages,until",
    [(name, ("memory_io", "compute")[nth % 2]) for nth, name in enumerate(STAGES)],
)
def test_all_checks_equal_those_of_a_serial_system(stages, until, small_graph, one_thread):
    settings = prefetch(3, **STAGES[stages])
    system = make(small_graph, settings=settings, until=until, **SMALL)
    serial = make(small_graph, settings=STAGES[stages], until=until, **SMALL)
    gate, right = system.check(), serial.check()
    assert gate.ok, gate.reason
    assert gate.digest == right.digest and gate.details == right.details
    assert system.glance() == serial.glance()
    for one in (system, serial):
        if one.recipe.features.foresees:
            one.foresee((5,))
    report, timeline = verify_timed(system, 5)
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


SAMPLED = [
    (system, stages)
    for nth, system in enumerate(SYSTEMS)
    for stages in (("host", "match"), ("match", "greedy"), ("greedy", "host"))[nth % 3]
]


@pytest.mark.parametrize("system,stages", SAMPLED)
def test_every_sampler_can_draw_on_a_thread(system, stages, small_graph, one_thread):
    """Also those of DGL and PyG, with our stores and theirs."""
    settings = {} if stages == "host" else STAGES[stages]
    made = make(small_graph, system, prefetch(2, **settings), **SMALL)
    assert made.check().ok
    for epoch in range(3):
        report = run(made, epoch)
        assert report.ok, report.reason
    report = made.verify(4, Timeline.on("cpu"))
    assert report.ok, report.reason
    made.close()


def test_worker_processes_of_pyg_can_be_used_by_a_thread(small_graph, one_thread):
    settings = prefetch(2, **{"sampler.workers": 2, "sampler.extension": "torch-sparse"})
    made = make(small_graph, "pyg", settings, **SMALL)
    for epoch in range(2):
        report = run(made, epoch)
        assert report.ok, report.reason
    made.close()


@pytest.mark.parametrize("stage", ["sampler", "store", "trainer"])
@pytest.mark.usefixtures("no_collection")
def test_an_interrupt_in_any_phase_ends_the_epoch(stage, small_graph, one_thread):
    system = make(small_graph, settings=prefetch(), **SMALL)
    name = {"sampler": "sample", "store": "load", "trainer": "step"}[stage]
    interrupted_stage = getattr(system.stages, stage)
    method, calls = getattr(interrupted_stage, name), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            _thread.interrupt_main()
        return method(*args)

    setattr(interrupted_stage, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        timed(system, 0)
    assert_no_thread_is_left()
    setattr(interrupted_stage, name, method)
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
def test_a_buffer_reused_too_early_later_does_not_pass_the_verification(
    until, small_graph, one_thread
):
    system = spoilt(OneShortLater, small_graph, 2, until=until)
    assert system.check().ok
    report = system.verify(3, Timeline.on("cpu"))
    assert not report.ok and "feature rows differ" in report.reason


def test_sampling_alone_is_serial(small_graph, one_thread):
    systems = [make(small_graph, settings=s, until="sample") for s in ({}, prefetch(4))]
    assert [run(s).sampled_edges for s in systems] == [run(systems[0]).sampled_edges] * 2
    assert timed(systems[1], 2).overlap == 0


class Turns(WindowStore):
    """Windows' rows in a ring of buffers, as where a GPU reads them; batches see views."""

    def __init__(self, job, window, buffers):
        super().__init__(job, HostGather(replace(job, max_in_flight=1)), window)
        self._turns = RowRing(job, "cpu", buffers)
        self._turns.reserve(window * job.graph.num_nodes)  # a larger one would be other memory

    def _fetch(self, batches, announced):
        right = super()._fetch(batches, announced)
        rows = torch.cat([right.rows(nth) for nth in range(len(batches))])
        return BatchRows(self._turns.rows(len(rows)).copy_(rows), batches)


@pytest.mark.parametrize(
    "window,depth,buffers", [(8, 0, 2), (8, 1, 2), (3, 3, 2), (3, 4, 3), (2, 5, 4), (1, 3, 4)]
)
def test_memory_of_a_window_is_not_reused_while_its_rows_are_read(
    window, depth, buffers, small_graph, one_thread
):
    """With as many buffers as an epoch needs the gate passes, with one less it fails."""
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

    def _fetch(self, batches, announced):
        fetched = super()._fetch(batches, announced)
        self.windows.append(len(batches))
        parts = [fetched.rows(nth) + (nth >= self._right) for nth in range(len(batches))]
        return BatchRows(torch.cat(parts), batches)


@pytest.mark.parametrize(
    "right,depth",
    [*((right, (None, 0, 2)[right % 3]) for right in range(8)), (8, None), (8, 0), (8, 2)],
)
def test_the_gate_checks_every_place_of_a_window(right, depth, small_graph, one_thread):
    settings = {"features": "window", "features.window": 8}
    settings = settings if depth is None else prefetch(depth, **settings)
    system = make(small_graph, settings=settings, **TWENTY)
    system.stages.store = Places(system.job, 8, right)
    report = system.check()
    assert report.ok == (right == 8) and ("feature rows differ" in report.reason) == (right < 8)


@pytest.mark.parametrize("size,epochs", [(100, [2, 2, 1]), (200, [1] * 5), (50, [4, 1])])
def test_windows_of_the_gate_are_no_longer_than_a_short_epoch(
    size, epochs, small_graph, one_thread
):
    """Its five batches repeat those of the epoch."""
    settings = {"features": "window", "features.window": 8}
    system = make(small_graph, settings=settings, batch_size=size, fanouts=(3, 2))
    system.stages.store = Places(system.job, 8, 8)
    system.stages.store.windows = windows = []
    assert system.check().ok
    assert windows[: len(epochs)] == epochs
