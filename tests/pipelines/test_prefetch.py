"""The prefetching schedule: depth, order of calls, spans, errors, and rows under delays."""

import random
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from compose import assert_no_thread_is_left

from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features.spec import Cache, Host, Match, Window
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.order import Order
from gnnbench.pipelines.prefetch import Prefetch, PrefetchSchedule
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.schedule_plan import plan_of
from gnnbench.pipelines.serial import Serial, SerialSchedule
from gnnbench.sampling.stage import SamplerStage
from gnnbench.systems.runtime.find import find

NODES = 90


class Backwards(Order):
    """Runs each window from its end."""

    def __init__(self, window):
        self.window = window

    def batches(self, epoch, device="cpu"):
        raise AssertionError

    def arrange(self, batches, last):
        return list(range(len(batches)))[::-1]


class FunctionSampler(SamplerStage):
    """A sampler stage made of a function."""

    def __init__(self, sample):
        self._sample = sample

    def sample(self, seeds, epoch, number):
        return self._sample(seeds, epoch, number)

    def end(self, ticket):
        return ticket


class AsyncSampler(FunctionSampler):
    """Samples a batch when it is submitted; records the batches that are fetched."""

    submits_async = True

    def __init__(self, sample):
        super().__init__(sample)
        self.fetched, self.open, self.most = [], 0, 0

    def begin(self, seeds, epoch, number):
        self.open += 1
        self.most = max(self.most, self.open)
        return number, self._sample(seeds, epoch, number)

    def end(self, ticket):
        number, batch = ticket
        self.open -= 1
        self.fetched.append(number)
        return batch


class RecordedStages:
    """Stages that record their calls, in one list for all threads."""

    def __init__(self, order=None, window=1, spoil=None, sampler=FunctionSampler):
        self.calls, self._spoil, self.threads = [], spoil, {}
        store = SimpleNamespace(
            load=self._recorded("load", lambda b: f"rows of {b}"), window=window
        )
        store.announce = self._recorded("announce", lambda batches: None)
        self.stages = Stages(
            sampler(self._recorded("sample", lambda s, e, n: f"batch {n}", 2)),
            store,
            SimpleNamespace(step=self._recorded("step", lambda b, rows: None)),
            self._recorded("keep", lambda b, rows: None),
            order,
        )

    def _recorded(self, name, answer, of=0):
        def call(*args):
            self.threads[name] = threading.current_thread()
            argument = args[of]
            if isinstance(argument, list):
                argument = tuple(argument)
            self.calls.append((name, argument))
            if self._spoil is not None and self._spoil[0] == self.calls[-1]:
                raise self._spoil[1]
            return answer(*args)

        return call

    def of(self, *names):
        return [call for call in self.calls if call[0] in names]


def epoch(stages, count, schedule, until=Until.COMPUTE):
    timeline = Timeline.on("cpu")
    timeline.start()
    seeds = [torch.tensor([n]) for n in range(count)]
    schedule.epoch(6, seeds, stages, timeline, until)
    timeline.stop()
    assert_no_thread_is_left()
    return timeline


WINDOWS = [(None, 1), (Backwards(3), 1), (Backwards(1), 2), (Backwards(2), 3)]


@pytest.mark.parametrize("depth", [1, 2, 7, 64])
@pytest.mark.parametrize("order,window", WINDOWS)
@pytest.mark.parametrize("count", [1, 2, 11])
def test_each_stage_is_called_in_the_serial_order(count, order, window, depth):
    serial, ahead = RecordedStages(order, window), RecordedStages(order, window)
    right = epoch(serial.stages, count, SerialSchedule())
    timeline = epoch(ahead.stages, count, PrefetchSchedule(depth))
    for names in (["sample"], ["announce", "load"], ["step", "keep"]):
        assert ahead.of(*names) == serial.of(*names)
    for phase in ("sample", "memory_io", "compute"):
        batches = [[s.batch for s in t.spans() if s.phase == phase] for t in (right, timeline)]
        assert batches[0] == batches[1]
    lanes = {(s.phase, s.lane) for s in timeline.spans()}
    assert lanes == {("sample", "sample"), ("memory_io", "memory_io"), ("compute", "host")}
    sweep = timeline.sweep()
    assert sweep.wall == pytest.approx(sweep.idle + sweep.overlap + sum(sweep.alone.values()))
    assert len(set(ahead.threads.values())) == 3
    assert ahead.threads["step"] is ahead.threads["keep"] is threading.main_thread()


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("order,window", WINDOWS)
@pytest.mark.parametrize("count", [1, 2, 30])
def test_an_asynchronous_sampler_draws_one_batch_further_ahead(count, order, window, depth):
    serial, ahead = (
        RecordedStages(order, window),
        RecordedStages(order, window, sampler=AsyncSampler),
    )
    epoch(serial.stages, count, SerialSchedule())
    epoch(ahead.stages, count, PrefetchSchedule(depth))
    for names in (["sample"], ["announce", "load"], ["step", "keep"]):
        assert ahead.of(*names) == serial.of(*names)
    sampler = ahead.stages.sampler
    assert sampler.fetched == list(range(count)) and sampler.open == 0
    assert sampler.most == min(2, count)


def test_an_epoch_that_ends_with_the_rows():
    recorded = RecordedStages()
    recorded.stages.trainer = None
    line = epoch(recorded.stages, 5, PrefetchSchedule(2), Until.MEMORY_IO)
    assert recorded.of("keep") == [("keep", f"batch {n}") for n in range(5)]
    assert {s.phase for s in line.spans()} == {"sample", "memory_io"}


def test_sampling_alone_is_serials():
    recorded = RecordedStages()
    line = epoch(recorded.stages, 3, PrefetchSchedule(1), Until.SAMPLE)
    assert [(s.phase, s.batch, s.lane) for s in line.spans()] == [("sample", -1, "host")]
    assert recorded.threads["sample"] is threading.main_thread()


@pytest.mark.parametrize("until", list(Until))
def test_no_batches(until):
    recorded = RecordedStages()
    epoch(recorded.stages, 0, PrefetchSchedule(1), until)
    assert recorded.calls == []


@pytest.mark.parametrize("order,window", WINDOWS)
@pytest.mark.parametrize("depth", [1, 3])
def test_phases_run_as_far_ahead_as_the_depth_allows(depth, order, window):
    """Each phase of the first batch waits until the other phases cannot continue without it."""
    recorded, count = RecordedStages(order, window), 40
    ahead = recorded.stages.window
    reached = {"load": depth + 1, "sample": depth + 1 + ahead + depth}

    def settled(name):
        """Wait for that many calls; return the number of calls a while later."""
        limit = time.monotonic() + 30
        while len(recorded.of(name)) < reached[name]:
            assert time.monotonic() < limit, recorded.calls
            time.sleep(0.001)
        time.sleep(0.02)
        return len(recorded.of(name))

    steps = []

    def step(batch, rows):
        if not steps:
            steps.append({name: settled(name) for name in reached})

    recorded.stages.trainer = SimpleNamespace(step=step)
    epoch(recorded.stages, count, PrefetchSchedule(depth))
    assert steps == [reached]


PLACES = [
    ("sample", 0), ("sample", 1), ("sample", 9), ("load", "batch 0"), ("load", "batch 7"),
    ("step", "batch 0"), ("step", "batch 6"), ("keep", "batch 3"), ("announce", None),
]  # fmt: skip


ERRORS = [ValueError, KeyboardInterrupt, MemoryError, SystemExit]
RAISED = [
    (place, (1, 4)[(i + j) % 2], kind)
    for i, place in enumerate(PLACES)
    for j, kind in enumerate(ERRORS)
]


@pytest.mark.parametrize("place,depth,kind", RAISED, ids=str)
def test_an_error_anywhere_is_raised_unchanged(place, depth, kind):
    error, order, window = kind("mine"), None, 1
    if place[0] == "announce":
        order, window, place = Backwards(1), 2, ("announce", ("batch 4", "batch 5"))
    recorded = RecordedStages(order, window, (place, error))
    with pytest.raises(kind) as raised:
        epoch(recorded.stages, 10, PrefetchSchedule(depth))
    assert raised.value is error
    assert_no_thread_is_left()
    assert recorded.calls.count(place) == 1


def test_an_error_of_the_order_is_raised_unchanged():
    class Broken(Backwards):
        def arrange(self, batches, last):
            return [0]

    recorded = RecordedStages(Broken(4))
    with pytest.raises(UsageError, match="arranged 4 batches as 1"):
        epoch(recorded.stages, 10, PrefetchSchedule(1))
    assert_no_thread_is_left()


# Rows are compared bit for bit when they are used, with delays in each stage.

TABLE = torch.randint(
    0, 256, (NODES, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
).view(torch.float32)
STORES = [Host(), Cache(policy="degree", ratio=0.3), Match(), Window(window=3)]


class DelayedStages:
    """A system's stages over a table, some of them delayed; rows are checked when trained on."""

    def __init__(self, spec, outputs, late=(), order=None, store=None):
        graph = SimpleNamespace(
            name="t", features=TABLE, num_nodes=NODES, indices=torch.arange(NODES)
        )
        job = Job(Cell("e", "s", "t", ""), graph, Counts(), outputs)
        built = store(job) if store is not None else spec.build(job)
        built.prepare(lambda epoch: iter(()))
        self.store, self._late, self.wrong, self.run = built, late, [], []
        self._delays = random.Random(f"{spec} {outputs} {late}")
        inner = SimpleNamespace(load=self._load, announce=built.announce, window=built.window)
        self.stages = Stages(
            FunctionSampler(self._sample), inner, SimpleNamespace(step=self._step),
            self._keep, order,
        )  # fmt: skip

    def _delay(self, stage):
        if stage in self._late and self._delays.random() < 0.2:
            time.sleep(self._delays.random() * 0.002)

    def _sample(self, seeds, epoch, number):
        self._delay("sample")
        draw = torch.Generator().manual_seed(number)
        nodes = torch.randperm(NODES, generator=draw)
        few = int(torch.randint(1, NODES, (), generator=draw))
        return SimpleNamespace(input_nodes=nodes[:few].int(), number=number)

    def _load(self, batch):
        self._delay("load")
        return self.store.load(batch)

    def _step(self, batch, rows):
        self._look(batch, rows)
        self._delay("step")

    def _keep(self, batch, rows):
        self._look(batch, rows)
        self.run.append(batch.number)

    def _look(self, batch, rows):
        right = TABLE[batch.input_nodes.long()]
        if not torch.equal(rows.view(torch.uint8), right.view(torch.uint8)):
            self.wrong.append(batch.number)


# Every store and order with every delay and depth.
DELAYS = [("sample",), ("load",), ("step",), ("sample", "load", "step"), ()]
DELAYED = [
    (spec, order, (1, 2, 6)[(i + j) % 3], late)
    for i, (spec, order) in enumerate((s, o) for s in STORES for o in (None, Backwards(4)))
    for j, late in enumerate(DELAYS)
]


@pytest.mark.parametrize("spec,order,depth,late", DELAYED)
def test_rows_are_right_for_hundreds_of_batches_under_delays(spec, order, depth, late, one_thread):
    if order is None and isinstance(spec, Window):
        order = Backwards(1)
    schedule = PrefetchSchedule(depth)
    delayed = DelayedStages(spec.resolved("cpu"), schedule.depth + 1, late, order)
    epoch(delayed.stages, 200, schedule)
    assert delayed.wrong == []
    assert sorted(delayed.run) == list(range(200))
    assert (delayed.run == sorted(delayed.run)) == (order is None or order.window == 1)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_buffer_reused_too_early_is_detected(depth, one_thread):
    """The same check detects a store with one buffer too few."""
    from gnnbench.features.host import HostGather

    def short(job):
        store = HostGather(job)
        store._ring._buffers.pop()
        return store

    schedule, count = PrefetchSchedule(depth), 50
    delayed = DelayedStages(Host(), schedule.depth + 1, store=short)
    load, step = delayed.stages.store.load, delayed.stages.trainer.step
    loaded, changed = [], threading.Condition()

    def record(batch):
        rows = load(batch)
        with changed:
            loaded.append(batch.number)
            changed.notify()
        return rows

    def late(batch, rows):
        """Trains only after all batches that may be loaded are loaded."""
        with changed:
            assert changed.wait_for(lambda: len(loaded) >= min(batch.number + depth + 1, count), 30)
        step(batch, rows)

    delayed.stages.store.load, delayed.stages.trainer.step = record, late
    epoch(delayed.stages, count, schedule)
    assert len(set(delayed.wrong)) > count // 2


def test_options_are_resolved_and_checked():
    specs = (Prefetch(), Prefetch(depth=5), Serial())
    assert [plan_of(spec).outputs_in_flight for spec in specs] == [2, 6, 1]
    expected = {"name": "prefetch", "depth": 1, "sms": 16, "first": "link"}
    assert plan_of(Prefetch(sms=16).resolved("cuda")).adapted_to(Host()).plain() == expected
    for store, depth in ((None, 1), (Match(), 1), (Window(window=5), 5), (Window(window=99), 64)):
        assert plan_of(Prefetch()).adapted_to(store).depth == depth
        assert plan_of(Prefetch(depth=2)).adapted_to(store).depth == 2
    settings = {"features": "window", "features.window": 3, "schedule": "prefetch"}
    assert (
        find("baseline").resolved(settings, "cpu", Until.COMPUTE).recipe["schedule"]["depth"] == 3
    )
    with pytest.raises(UnsupportedError, match=r"schedule.sms=16 shares out a GPU's multiproc"):
        Prefetch(sms=16).resolved("cpu")
    for wrong in ({"depth": -1}, {"depth": 65}, {"sms": -1}, {"first": "it"}):
        with pytest.raises(UsageError, match="schedule 'prefetch'"):
            Prefetch(**wrong)
