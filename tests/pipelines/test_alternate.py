"""The alternating schedule: phases, spans, stored batches, and lack of memory."""

import itertools

import pytest
import torch
from compose import counted, epoch_timeline, make, run, timed

from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.errors import GpuMemoryError, HostMemoryError, UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.pipelines import alternating_phases as turns
from gnnbench.pipelines.alternate import Alternate
from gnnbench.pipelines.alternating_phases import AlternatingPhases, StoredSamples
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.systems.runtime.find import find

SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten batches


def alternate(batches=0, **settings):
    return {"schedule": "alternate", "schedule.batches": batches, **settings}


def job_on(device, graph):
    cell = Cell("test", "baseline", graph.name, model="gcn", device=device, batch_size=8,
                fanouts=(2, 2), hidden=4)  # fmt: skip
    return Job(cell, graph, Counts())


def same(a, b):
    return a is b is None or (a.dtype == b.dtype and torch.equal(a, b))


def ids_of(batch):
    return [batch.seeds, *(block.src_nodes for block in batch.blocks)]


def parts_of(batch):
    blocks = ((b.indptr, b.indices, b.positions, b.weights) for b in batch.blocks)
    return [*ids_of(batch), *itertools.chain(*blocks)]


def order_of(system, epoch=0):
    """Phases of an epoch as they come, by batch."""
    timeline = epoch_timeline(system, epoch)
    return [(s.phase, s.batch) for s in sorted(timeline.spans(), key=lambda s: s.begin)]


def turn(batches):
    """Expected phases: sampling; then each batch is read back, loaded and trained on."""
    sampled = [("sample", n) for n in batches]
    return sampled + [(p, n) for n in batches for p in ("sample", "memory_io", "compute")]


@pytest.mark.parametrize("batches,turns", [(0, [10]), (10, [10]), (99, [10]), (4, [4, 4, 2])])
def test_all_batches_of_a_turn_are_sampled_before_training(batches, turns, small_graph):
    system = make(small_graph, settings=alternate(batches), **SMALL)
    right, begin = [], 0
    for count in turns:
        right += turn(range(begin, begin + count))
        begin += count
    assert order_of(system) == right


@pytest.mark.parametrize("batches,turns", [(0, [10]), (4, [4, 4, 2])])
def test_rows_are_fetched_ahead_within_a_turn_on_their_own_streams(batches, turns, small_graph):
    settings = alternate(batches, **{"schedule.depth": 1})
    system = make(small_graph, settings=settings, **SMALL)
    timeline = epoch_timeline(system)
    begun = {}
    for span in timeline.spans():
        begun.setdefault((span.phase, span.lane), []).append(span.batch)
    assert begun == {
        (phase, lane): list(range(10))
        for phase, lane in (("sample", "host"), ("sample", "sample"), ("memory_io", "memory_io"),
                            ("compute", "host"))
    }  # fmt: skip
    own = [(s.phase, s.batch) for s in timeline.spans() if s.lane == "host"]
    right, first = [], 0
    for count in turns:
        numbers = range(first, first + count)
        right += [(phase, n) for phase in ("sample", "compute") for n in numbers]
        first += count
    assert own == right
    assert system.job.max_in_flight == 2


def test_turn_has_complete_windows(small_graph):
    window = {"features": "window", "features.window": 3}
    system = make(small_graph, settings=alternate(4, **window), **SMALL)
    phases = [phase for phase, _ in order_of(system)]
    # Six are sampled and stored, and read back in threes, ordered by an additional memory IO span.
    three = ["sample"] * 3 + ["memory_io"] + ["memory_io", "compute"] * 3
    one = ["sample", "memory_io", "memory_io", "compute"]
    assert phases == ["sample"] * 6 + three * 2 + ["sample"] * 4 + three + one


def test_stored_bytes_are_those_of_the_samples(small_graph):
    """A batch's nodes are one array; inner blocks use its beginning."""
    nodes = torch.arange(100)
    blocks = [
        Block(torch.zeros(41, dtype=torch.int32), torch.zeros(300, dtype=torch.int32), nodes, 40),
        Block(torch.zeros(9, dtype=torch.int32), torch.zeros(50, dtype=torch.int32), nodes[:40], 8),
    ]
    batch = MiniBatch(torch.arange(8), blocks, 350)
    waiting = StoredSamples(job_on("cpu", small_graph), True)
    waiting.put(batch)
    # seeds, offsets, columns and nodes, offsets, columns: each aligned to 256 bytes
    assert waiting.bytes == 256 + 256 + 1280 + 1024 + 256 + 256
    assert waiting.sample(batch.seeds, 0, 0) is batch  # on a CPU it needs no copy


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("pick", ["floyd", "random_walk"])
def test_moved_sample_is_restored(pick, frontier, small_graph, monkeypatch):
    """Each sample is one allocation, as for a GPU; its ids are copied out of it."""
    settings = {"sampler.pick": pick, "sampler.frontier": frontier}
    system = make(small_graph, settings=settings, until="sample", **SMALL)
    allocations = []

    def allocate(size):
        allocations.append(torch.full((size,), 77, dtype=torch.uint8))
        return allocations[-1]

    monkeypatch.setattr(StoredSamples, "_locked", staticmethod(allocate))
    waiting = StoredSamples(system.job, True)
    waiting._moves = True
    seeds = system.order.batches(0, "cpu")[:3]
    batches = [system.stages.sampler.checked(few, n) for n, few in enumerate(seeds)]
    for batch in batches:
        waiting.put(batch)
    assert sum(map(len, allocations)) == waiting.bytes and len(allocations) == 3
    for batch, memory in zip(batches, allocations, strict=True):
        moved = waiting.sample(batch.seeds, 0, batch.number)
        assert (moved.number, moved.frontier) == (batch.number, frontier)
        assert moved.sampled_edges == batch.sampled_edges
        assert all(same(*pair) for pair in zip(parts_of(moved), parts_of(batch), strict=True))
        memory.fill_(1)
        assert all(same(*pair) for pair in zip(ids_of(moved), ids_of(batch), strict=True))
        assert not same(moved.blocks[0].indices, batch.blocks[0].indices)


@pytest.mark.parametrize("batches", [0, 3])
def test_stored_bytes_are_counted_in_total_and_at_most(batches, small_graph, one_thread):
    system = make(small_graph, settings=alternate(batches), **SMALL)
    sizes = []
    seeds = system.order.batches(0, "cpu")
    for number, few in enumerate(seeds):
        waiting = StoredSamples(system.job, True)
        waiting.put(system.stages.sampler.sample(few, 0, number))
        sizes.append(waiting.bytes)
    counts = counted(run(system))
    of_turns = [sum(sizes[i : i + (batches or 10)]) for i in range(0, 10, batches or 10)]
    assert counts["schedule", "stored_bytes", "host"] == sum(sizes) > 0
    assert counts["schedule", "stored_most_bytes", "host"] == max(of_turns)


def test_samples_that_do_not_fit_are_refused_at_the_first_one(small_graph, monkeypatch):
    system = make(small_graph, settings=alternate(), **SMALL)
    drawn = []
    right = system.stages.sampler.sample
    system.stages.sampler.sample = lambda *a: drawn.append(a) or right(*a)
    monkeypatch.setattr(turns, "free_memory_bytes", lambda: 9000)
    words = r"9 more samples of .* GiB each are to be stored, and the host has .* GiB free; give"
    with pytest.raises(HostMemoryError, match=words + r" schedule\.batches=N for shorter turns$"):
        timed(system, 0)
    assert len(drawn) == 1
    monkeypatch.setattr(turns, "free_memory_bytes", lambda: 1 << 30)
    assert run(system).ok  # a failure leaves no samples
    system.run_unmeasured(5, 4)
    monkeypatch.setattr(turns, "free_memory_bytes", lambda: 9000)
    assert run(system).ok  # as many were known to fit
    few = make(small_graph, settings=alternate(), **SMALL)
    few.run_unmeasured(5, 2)
    with pytest.raises(HostMemoryError, match=words):  # two fit; ten were never checked
        timed(few, 0)
    short = make(small_graph, settings=alternate(1), **SMALL)
    monkeypatch.setattr(turns, "free_memory_bytes", lambda: 0)
    assert run(short).ok  # a turn of one has no more samples to store


def test_error_on_a_gpu_suggests_the_other_memory(small_graph, monkeypatch):
    for on_host, error, other in ((True, HostMemoryError, "gpu"), (False, GpuMemoryError, "host")):
        schedule = AlternatingPhases(job_on("cuda:0", small_graph), 0, on_host)
        monkeypatch.setattr(schedule, "_free_bytes", lambda: 99)
        with pytest.raises(error, match=rf"for shorter turns, or schedule\.stored={other}$"):
            schedule._check_memory(100, 1)
        schedule._check_memory(99, 1)


def test_memory_of_stored_samples():
    assert Alternate().resolved("cpu").stored == Alternate().resolved("cuda").stored == "host"
    assert Alternate(stored="gpu").resolved("cuda").stored == "gpu"
    with pytest.raises(UnsupportedError, match=r"schedule\.stored=gpu needs a GPU"):
        Alternate(stored="gpu").resolved("cpu")


def test_sampling_only_epoch_is_serial(small_graph):
    system = make(small_graph, settings=alternate(), until="sample", **SMALL)
    assert isinstance(system.schedule, SerialSchedule)
    assert run(system).ok


@pytest.mark.parametrize("name", ["dgl", "pyg", "pyg-native"])
def test_batches_of_foreign_samplers_are_refused(name):
    named = find("baseline")
    resolved = named.resolved(alternate(sampler=name), "cpu", Until.COMPUTE)
    assert f"stores batches of gnnbench's own blocks, and sampler '{name}'" in resolved.unsupported
