"""A producer process: same work as in one process, no early writes, clean shutdown."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import planted_stages
import pytest
import torch
from compose import counted, make, run, timed, without_times
from two_processes import TWO, alive, without_own

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import Batch
from gnnbench.distributed import mps, producer_consumer
from gnnbench.distributed.producer import Producer
from gnnbench.distributed.producer_client import ProducerDiedError
from gnnbench.distributed.producer_consumer import ProducerConsumer, start_early
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.systems.runtime.find import find

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {"batch_size": 2, "fanouts": (3, 2)}  # a hundred batches
SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten


def wait_until(holds):
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def buffers_of(process):
    """Return the inodes of buffers that a process (a folder of /proc) maps or has open."""
    inodes = set()
    with suppress(OSError):
        for line in (process / "maps").read_text().splitlines():
            if "/memfd:gnnbench:batches" in line:
                inodes.add(int(line.split()[4]))
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                if "/memfd:gnnbench:batches" in str(link.readlink()):
                    inodes.add(link.stat().st_ino)
    return inodes


def anywhere():
    """Return those of all processes."""
    return set().union(*map(buffers_of, Path("/proc").glob("[0-9]*")))


def test_results_equal_serial_under_delays_of_either_side(planted, two, small_graph):
    """Two hundred batches, each verified; each side sleeps sometimes."""
    late = two(planted("slow", "none"), **TINY)
    plain = make(small_graph, **TINY)
    right, sleeps = late.stages.keep, random.Random(5)

    def keep(batch, rows):
        if late.late and sleeps.random() < 0.1:
            time.sleep(sleeps.random() * 0.02)
        right(batch, rows)

    late.stages.keep = keep
    for epoch in range(2):
        late.late = epoch % 2 == 1
        timelines = [Timeline.on("cpu"), Timeline.on("cpu")]
        reports = []
        for system, timeline in zip((late, plain), timelines, strict=True):
            timeline.start()
            reports.append(system.verify(epoch, timeline))
            timeline.stop()
        ours, theirs = reports
        assert ours.ok, ours.reason
        for what in ("loss", "digest", "param_norm", "param_moved", "unique_nodes", "batches"):
            assert getattr(ours, what) == getattr(theirs, what), what
        assert ours.batches == 100 and without_own(ours) == counted(theirs)
        counts = counted(ours)
        assert counts["schedule", "handed_bytes", ""] > ours.unique_nodes * 24 * 4
        assert counts["schedule", "buffers_grown", ""] >= (0 if epoch else 2)
    assert ours.peak_alloc_bytes > theirs.peak_alloc_bytes  # includes that of the producer


def test_spans_of_the_producer_have_their_own_lane(planted, two, small_graph):
    system = two(planted("late"), system="zero-copy", **SMALL)
    serial = make(small_graph, **SMALL)
    timelines = [Timeline.on("cpu"), Timeline.on("cpu")]
    step = system.trainer.step
    system.trainer.step = lambda batch, rows: (time.sleep(0.02), step(batch, rows))
    for one, timeline in zip((system, serial), timelines, strict=True):
        timeline.start()
        one.run_epoch(0, timeline)
        timeline.stop()
    spans, others = (timeline.spans() for timeline in timelines)
    producers = [s for s in spans if s.lane == "producer"]
    assert {s.phase for s in producers} == {"sample", "memory_io"}
    for phase in ("sample", "compute"):
        numbers = [s.batch for s in spans if s.phase == phase]
        assert numbers == [s.batch for s in others if s.phase == phase] == list(range(10))
    timeline = timelines[0]
    assert timeline.sweep().overlap > 0 == timelines[1].sweep().overlap
    assert all(timeline.begin <= s.begin <= s.end <= timeline.end for s in spans)
    # A batch is handed over, and then trained on.
    for number in range(10):
        ends = [s.end for s in producers if s.batch == number]
        assert max(ends) <= next(s.begin for s in spans if s[:1] + s[2:3] == ("compute", number))
    # At most two batches are in flight: the third is written when the first is done.
    for number in range(8):
        copied = max(
            (s for s in producers if (s.phase, s.batch) == ("memory_io", number + 2)),
            key=lambda s: s.begin,
        )
        assert copied.begin >= next(
            s.end for s in spans if (s.phase, s.batch) == ("compute", number)
        )


def test_early_write_of_the_producer_is_caught(planted, two, tmp_path, monkeypatch):
    mark = tmp_path / "loaded"
    monkeypatch.setenv(planted_stages.MARK, str(mark))
    system = two(planted("hasty"), until="memory_io", **SMALL)
    right = system.stages.keep

    def keep(batch, rows):
        assert wait_until(mark.exists)
        right(batch, rows)

    system.stages.keep = keep
    report = system.verify(3, Timeline.on("cpu"))
    assert not report.ok and report.reason.startswith("batch 1: ")


def test_errors_cross_with_type_and_text_and_the_next_epoch_runs(planted, two, small_graph):
    system = two(planted("usage", "memory", "own", "none", "dies"), **SMALL)
    with pytest.raises(UsageError, match="the table stands on its head; turn it"):
        timed(system, 0)
    with pytest.raises(MemoryError, match="cannot allocate memory: planted"):
        timed(system, 0)
    with pytest.raises(RuntimeError, match="OwnError: this and that"):
        timed(system, 0)
    system.audit(0)
    report = run(system, 1)
    assert report.ok and without_own(report) == counted(run(make(small_graph, **SMALL), 1))
    for _ in range(2):
        with pytest.raises(ProducerDiedError, match="the producer's process died by SIGKILL; run"):
            timed(system, 2)
    assert not alive(system.schedule.pid)


def test_failed_setup_of_the_producer_has_a_reason(planted, small_graph):
    system = make(small_graph, settings=planted(), setup=False, **SMALL)
    system.cell.recipe["sampler"]["pick"] = "weighted_alias"
    system.schedule = system.recipe.schedule.build(system.job)
    for call in (lambda: system.schedule.start(None), lambda: system.schedule.foresee((0,))):
        with pytest.raises(UnsupportedError, match="needs edge weights, and 'small' stores none"):
            call()
    system.close()


def test_epoch_abandoned_by_the_consumer(two, small_graph):
    """The producer ends it as well. Its finished batches are not used in the next epoch, and the
    consumer learns of replaced memory."""
    system, plain = two(**TINY), make(small_graph, **TINY)
    schedule, step = system.schedule, system.trainer.step

    def fail(batch, rows):
        raise ValueError("enough")

    for settings in ({"at": 0}, {"at": 3}, {"at": 99}):
        calls = iter(range(1000))
        system.trainer.step = lambda b, r, c=calls, at=settings["at"]: (
            fail(b, r) if next(c) == at else None
        )
        with pytest.raises(ValueError, match="enough"):
            timed(system, 1)
        assert not schedule.client.is_busy
    system.trainer.step = step
    system.audit(1)
    for epoch in (4, 5):
        ours, theirs = run(system, epoch), run(plain, epoch)
        assert ours.ok and ours.unique_nodes == theirs.unique_nodes
        assert ours.loss == theirs.loss
    os.kill(schedule.pid, signal.SIGKILL)  # between epochs
    with pytest.raises(ProducerDiedError, match="SIGKILL"):
        timed(system, 6)


def test_buffers_grow_with_the_batches(two, small_graph):
    """Batches of a later epoch are larger than all before. With a single buffer, producer and
    trainer alternate."""
    system, plain = two({"schedule.buffers": 1}), make(small_graph)
    for one in (system, plain):
        few = one.order.batches
        one.order.batches = lambda epoch, device="cpu", few=few: (
            [seeds[: 1 + 19 * (epoch > 0)] for seeds in few(epoch, device)]
        )
        reports = [one.verify(epoch, Timeline.on("cpu")) for epoch in range(3)]
        assert all(report.ok for report in reports), [report.reason for report in reports]
        if one is system:
            sizes = [counted(r)["schedule", "buffer_bytes", ""] for r in reports]
            grown = [counted(r)["schedule", "buffers_grown", ""] for r in reports]
            assert sizes[0] < sizes[1] <= sizes[2] and grown[0] >= 1 and grown[1] >= 1
    assert run(system, 3).loss == run(plain, 3).loss


@pytest.mark.parametrize(
    "settings",
    [
        {"features": "match", "order": "greedy", "order.window": 3},
        {"features": "window", "features.window": 3, "order": "greedy", "order.window": 2},
        {
            "features": "match",
            "features.table": "cache",
            "features.table.policy": "optimal",
            "features.table.ratio": "auto",
            "features.table.memory_gib": 1e-5,
        },
    ],
    ids=["match-greedy", "window-greedy", "match-optimal"],
)
def test_stores_and_orders_equal_those_of_one_process(settings, two, small_graph):
    system, serial = two(settings, **SMALL), make(small_graph, settings=settings, **SMALL)
    assert system.check().digest == serial.check().digest
    for epoch in range(3):
        for one in (system, serial):
            if "features.table" in settings:
                one.foresee((epoch,))
        ours, theirs = (one.verify(epoch, Timeline.on("cpu")) for one in (system, serial))
        assert ours.ok and theirs.ok, ours.reason
        assert (ours.loss, ours.digest) == (theirs.loss, theirs.digest)
        assert without_times(without_own(ours)) == without_times(counted(theirs))
    assert system.recheck(7) == "" == system.glance()[1]
    alone, fault = system.probe([8])
    assert fault == "" and set(alone) == {"sample", "memory_io", "compute"}
    assert run(system, 9).counts != []


CONSUMER = """
import sys
sys.path[:0] = {path!r}
from compose import make, run
from test_producer_consumer import SMALL, TWO
import conftest
system = make(conftest.small_graph._get_wrapped_function()(), settings=TWO, **SMALL)
assert run(system).ok
print(system.schedule.pid, flush=True)
right = system.stages.keep
system.stages.keep = lambda batch, rows: (print("holds", flush=True), sys.stdin.read())
run(system, 1)
"""


def test_killed_consumer_leaves_no_processes_and_memory():
    here = Path(__file__)
    path = [str(here.parents[1]), str(here.parent)]  # the conftest of all tests
    with subprocess.Popen(
        [sys.executable, "-c", CONSUMER.format(path=path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as consumer:  # fmt: skip
        pid = int(consumer.stdout.readline())
        assert consumer.stdout.readline() == "holds\n"
        mapped = buffers_of(Path(f"/proc/{pid}"))
        assert alive(pid) and len(mapped) >= 2 and mapped <= anywhere()
        consumer.kill()
    assert wait_until(lambda: not alive(pid))
    assert wait_until(lambda: not mapped & anywhere())


def test_sampling_only_epoch_is_serial(small_graph):
    system = make(small_graph, settings=TWO, until="sample", **SMALL)
    assert isinstance(system.schedule, SerialSchedule)
    assert run(system).ok


def test_batches_of_a_foreign_framework_are_refused():
    assert not find("dgl").resolved(TWO, "cpu", Until.SAMPLE).unsupported
    resolved = find("dgl").resolved(TWO, "cpu", Until.COMPUTE)
    assert "sampler 'dgl' draws others; take one of gnnbench's own" in resolved.unsupported

    class Foreign(Batch):
        input_nodes = sizes = hops = tensors = None

    with pytest.raises(UnsupportedError, match="not a Foreign; take another sampler, or"):
        Producer._write(None, Foreign(), torch.zeros(0))


@pytest.mark.parametrize("name", ["share", "trainer_share"])
def test_a_share_needs_a_gpu_and_the_daemon(name, small_graph, monkeypatch):
    resolved = find("zero-copy").resolved({f"schedule.{name}": 10}, "cpu", Until.COMPUTE)
    assert f"schedule.{name} needs a GPU" in resolved.unsupported
    with pytest.raises(UsageError, match=f"{name} cannot be 0; it is 1 to 100"):
        ProducerConsumer(**{name: 0})
    monkeypatch.setattr(mps, "CONTROL", "no-such-command")
    job = make(small_graph, setup=False).job
    with pytest.raises(UnsupportedError, match="'no-such-command' is not installed"):
        ProducerConsumer(**{name: 10}).build(job)
    assert isinstance(ProducerConsumer.summary, str) and "twice" in ProducerConsumer.summary


BEGIN = """
import json, sys
from gnnbench.core.cell import Cell
from gnnbench.distributed import producer_consumer
producer_consumer.start_early(Cell.from_json(json.loads(sys.argv[1])))
print("torch" in sys.modules, *(one.process.pid for one in producer_consumer._started_early))
"""


def test_producer_starts_before_torch_is_imported_and_ends_with_its_parent(small_graph):
    job = make(small_graph, settings=TWO, setup=False, **SMALL).job
    cell_text = json.dumps(asdict(job.cell))
    done = subprocess.run(
        [sys.executable, "-c", BEGIN, cell_text], capture_output=True, text=True, check=True
    )
    torch_imported, pid = done.stdout.split()
    assert torch_imported == "False" and wait_until(lambda: not alive(int(pid)))
    assert mps.SHARE not in os.environ
    for other in (replace(job.cell, until="sample"), replace(job.cell, composed=False)):
        start_early(other)
        assert producer_consumer._started_early == []


def test_started_producer_is_used(small_graph):
    system = make(small_graph, settings=TWO, setup=False, **SMALL)
    start_early(system.cell)
    (begun,) = producer_consumer._started_early
    system.setup()
    assert system.schedule.pid == begun.process.pid and producer_consumer._started_early == []
    assert run(system).ok
    system.close()
    assert wait_until(lambda: not alive(begun.process.pid))
