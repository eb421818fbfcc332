"""The order of a GPU's streams, simulated by threads: enqueued work is done late, and in order.

Memory returns to the stream that it was allocated for as with torch's allocator: when nothing
refers to it on the host, even while work that reads it is still enqueued.
"""

import random
import threading
import time
import weakref
from contextlib import contextmanager
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.features.ring import RowRing
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines import streams as lanes
from gnnbench.pipelines.order import Order
from gnnbench.pipelines.prefetch import PrefetchSchedule
from gnnbench.pipelines.schedule import Stages
from gnnbench.sampling.stage import SamplerStage

NODES, FEW, COUNT = 60, 20, 80
TABLE = torch.arange(NODES * 4.0).view(NODES, 4)
HERE = threading.local()


class Stream(lanes.WorkStream):
    """A thread does the enqueued work in order, some of it late."""

    def __init__(self, name, late, deaf):
        super().__init__(name)
        self._work, self._late, self._deaf = SimpleQueue(), late, deaf
        self._delays = random.Random(name)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while (work := self._work.get()) is not None:
            work()

    def enqueue(self, work):
        if self._delays.random() < self._late:
            self._work.put(lambda: time.sleep(self._delays.random() * 0.003))
        self._work.put(work)

    @contextmanager
    def entered(self):
        HERE.lane = self
        yield

    def mark(self):
        event = threading.Event()
        self._work.put(event.set)
        return event

    def wait_for(self, mark):
        if not self._deaf:
            self._work.put(lambda: mark.wait(30))

    def close(self):
        self._work.put(None)
        self._thread.join()


class Pool:
    """Memory of a stream; memory without references is reused at once."""

    def __init__(self, shape, dtype):
        self._free, self._how = [], (shape, dtype)
        self.made = 0

    def take(self):
        if self._free:
            return self._free.pop()
        self.made += 1
        shape, dtype = self._how
        return torch.zeros(shape, dtype=dtype)

    def lend(self, memory, owner):
        weakref.finalize(owner, self._free.append, memory)


class Owned:
    """A reference of the host to memory of a pool."""

    def __init__(self, pool, **more):
        self.memory = pool.take()
        pool.lend(self.memory, self)
        self.__dict__.update(more)


class Sampler(SamplerStage):
    """Enqueues draws; ``submits_async``: reads the sizes later."""

    def __init__(self, submits_async):
        self._submits_async, self.pool = submits_async, Pool((FEW,), torch.int64)

    @property
    def submits_async(self):
        return self._submits_async

    def sample(self, seeds, epoch, number):
        ticket = self.begin(seeds, epoch, number)
        ticket[1].wait(30)  # sizes: the host waits for its own stream
        return ticket[0]

    def begin(self, seeds, epoch, number):
        batch, nodes = Owned(self.pool, number=number), right(number)
        into = batch.memory
        HERE.lane.enqueue(lambda: into.copy_(nodes))
        drawn = HERE.lane.mark()
        if not self._submits_async:
            drawn.wait(30)
            return batch
        return batch, drawn

    def end(self, ticket):
        if not self._submits_async:
            return ticket
        assert ticket[1].wait(30)
        return ticket[0]


class Store:
    """Enqueues gathers, into a ring or into memory of its own stream."""

    window = 1

    def __init__(self, outputs, fresh):
        graph = SimpleNamespace(features=TABLE)
        self._ring = RowRing(Job(Cell("e", "s", "t", ""), graph, Counts(), outputs), "cpu")
        self._fresh, self.pool = fresh, Pool((FEW, 4), torch.float32)

    def load(self, batch):
        ids = batch.memory
        if self._fresh:
            rows = Owned(self.pool)
            into = rows.memory
        else:
            rows = into = self._ring.rows(FEW)
        HERE.lane.enqueue(lambda: into.copy_(TABLE[ids]))
        return rows

    def announce(self, batches):
        pass


class Backwards(Order):
    def __init__(self, window):
        self.window = window

    def batches(self, epoch, device="cpu"):
        raise AssertionError

    def arrange(self, batches, last):
        """Reads the batches, and the last one, on the calling stream, without waiting."""
        read = [batch.memory for batch in (*batches, *([last] if last is not None else []))]
        numbers = [b.number for b in (*batches, *([last] if last is not None else []))]
        HERE.lane.enqueue(lambda: self.looked.extend(map(compared, read, numbers)))
        return list(range(len(batches)))[::-1]


def right(number):
    return torch.randperm(NODES, generator=torch.Generator().manual_seed(number))[:FEW]


def compared(memory, number):
    return torch.equal(memory, right(number))


def simulate(
    monkeypatch, depth, order=None, submits_async=False, fresh=False, late=(0.3, 0.3, 0.3), deaf=()
):
    """Run an epoch. Whether each check of nodes and rows passed, and the stages."""
    names = ("sample", "memory_io", "")
    streams = {n: Stream(n, s, n in deaf) for n, s in zip(names, late, strict=True)}
    own = streams[""]
    HERE.lane = own
    monkeypatch.setattr(lanes, "current_stream", lambda device: own)
    monkeypatch.setattr(lanes, "side_stream", lambda device, name, *how: streams[name])
    looks = []
    if order is not None:
        order.looked = looks
    schedule = PrefetchSchedule(depth)
    sampler, store = Sampler(submits_async), Store(schedule.depth + 1, fresh)

    def step(batch, rows):
        ids, number = batch.memory, batch.number
        values = rows.memory if fresh else rows
        for _ in range(2):
            own.enqueue(lambda: looks.append(torch.equal(values, TABLE[right(number)])))
            own.enqueue(lambda: looks.append(compared(ids, number)))

    stages = Stages(sampler, store, SimpleNamespace(step=step), lambda batch, rows: None, order)
    timeline = Timeline.on("cpu")
    timeline.start()
    schedule.epoch(0, [torch.tensor([n]) for n in range(COUNT)], stages, timeline, Until.COMPUTE)
    assert own.mark().wait(30)  # the caller's stream comes after all others
    others = [s for s in streams.values() if s is not own]
    assert deaf or all(s._work.empty() for s in others)
    for stream in streams.values():
        stream.close()
    return looks, stages


LATE = [(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5), (0.3, 0.3, 0.3), (0, 0, 0)]


# Every kind of memory and of sampler at every depth, and with every delay.
KINDS = [(fresh, submits_async) for fresh in (False, True) for submits_async in (False, True)]
CASES = [
    (depth, window, *KINDS[(i + j) % 4], late)
    for i, (depth, window) in enumerate(((1, 1), (2, 1), (1, 3), (4, 2)))
    for j, late in enumerate(LATE)
]


@pytest.mark.parametrize("depth,window,fresh,submits_async,late", CASES)
def test_nothing_is_overwritten_before_its_readers_are_done(
    monkeypatch, depth, window, fresh, submits_async, late
):
    order = None if window == 1 else Backwards(window)
    looks, stages = simulate(monkeypatch, depth, order, submits_async, fresh, late)
    assert len(looks) >= 4 * COUNT and all(looks)
    # Bounded under any delay: the batches sampled, loaded and trained, and one window.
    assert stages.sampler.pool.made <= 2 * window + 2 * depth + 4
    assert stages.store.pool.made <= depth + 2


@pytest.mark.parametrize("deaf", ["sample", "memory_io", ""], ids=["sample", "memory_io", "own"])
def test_a_stream_that_does_not_wait_is_detected(monkeypatch, deaf):
    late = {"sample": (0, 0.4, 0.4), "memory_io": (0.4, 0, 0.4), "": (0.4, 0.4, 0)}[deaf]
    looks, _ = simulate(monkeypatch, 1, submits_async=True, late=late, deaf=(deaf,))
    assert not all(looks)
