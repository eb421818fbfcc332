"""Sampler, producer and consumer as processes: same work as in one, errors of each, clean exits."""

import os
import signal
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch
from compose import counted, make, run, timed, verify_timed, without_times
from two_processes import alive, without_own

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.distributed import mps, producer_consumer
from gnnbench.distributed.producer_client import ProducerDiedError
from gnnbench.distributed.producer_consumer import start_early
from gnnbench.systems.runtime.find import find

pytestmark = pytest.mark.usefixtures("one_thread")

THREE = {"schedule.processes": 3}
SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten batches


@pytest.fixture
def three(two):
    return lambda settings=None, **changes: two({**(settings or {}), **THREE}, **changes)


def sampler_of(system):
    """Return the process of the sampler, the only child of the producer."""
    (child,) = psutil.Process(system.schedule.pid).children()
    return child


def verified(system, epoch):
    report, timeline = verify_timed(system, epoch)
    assert report.ok, report.reason
    return report, timeline


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sampler": "fastsample"},
        {"features": "cache", "features.policy": "presc#1", "features.ratio": 0.2},
        {"features": "match", "order": "greedy", "order.window": 3},
        {"schedule.buffers": 1},
    ],
    ids=["host", "fastsample", "cache", "match-greedy", "one-buffer"],
)
def test_samples_rows_and_losses_equal_serial(settings, three, small_graph):
    alone = {k: v for k, v in settings.items() if not k.startswith("schedule")}
    system, serial = three(settings, **SMALL), make(small_graph, settings=alone, **SMALL)
    assert system.check().digest == serial.check().digest
    for epoch in range(3):
        ours, theirs = verified(system, epoch)[0], verified(serial, epoch)[0]
        for what in ("loss", "digest", "param_norm", "param_moved", "unique_nodes", "batches"):
            assert getattr(ours, what) == getattr(theirs, what), what
        assert without_times(without_own(ours)) == without_times(counted(theirs))
    assert ours.peak_alloc_bytes > theirs.peak_alloc_bytes


def test_rows_are_gathered_in_the_shared_buffer(three):
    """Of Match's rows each is copied: ten batches of rows of 24 floats."""
    direct, copied = three(**SMALL), three({"features": "match"}, **SMALL)
    ours, theirs = run(direct, 1), run(copied, 1)
    assert counted(ours)["schedule", "copied_bytes", ""] == 0
    assert counted(theirs)["schedule", "copied_bytes", ""] == theirs.unique_nodes * 24 * 4


def test_each_process_has_a_lane_and_the_phases_of_a_batch_follow_each_other(planted, three):
    system = three(planted("late"), **SMALL)
    step = system.trainer.step
    system.trainer.step = lambda batch, rows: (time.sleep(0.02), step(batch, rows))
    report, timeline = verified(system, 0)
    spans = timeline.spans()
    begins = {(s.lane, s.phase, s.batch): s.begin for s in reversed(spans)}
    ends = {(s.lane, s.phase, s.batch): s.end for s in spans}
    path = [("sampler", "sample"), ("producer", "memory_io"), ("host", "compute")]
    for number in range(10):
        for before, after in pairwise(path):
            assert ends[*before, number] <= begins[*after, number]
    # While a batch is trained on, the next one is gathered: the slow stages hide each other.
    assert begins["producer", "memory_io", 1] < ends["host", "compute", 0]
    # A buffer is gathered into when its batch before the last is done.
    for number in range(8):
        done = ends["host", "compute", number]
        assert begins["producer", "memory_io", number + 2] >= done
    waits = {k[2]: n for k, n in counted(report).items() if k[1] == "synchronisations"}
    # A message from each neighbour about a batch; two releases arrive after the epoch.
    assert waits["consumer"] == 10 and 8 <= waits["sampler"] <= 10
    assert 10 + 8 <= waits["producer"] <= 10 + 10


def test_errors_of_the_producer_and_the_next_epoch(planted, three, small_graph):
    system = three(planted("usage", "none"), **SMALL)
    with pytest.raises(UsageError, match="the table stands on its head; turn it"):
        timed(system, 0)
    system.audit(0)
    report = run(system, 1)
    assert report.ok and without_own(report) == counted(run(make(small_graph, **SMALL), 1))


def test_epoch_that_the_consumer_abandons(three, small_graph):
    system, plain = three(**SMALL), make(small_graph, **SMALL)
    step, calls = system.trainer.step, iter(range(1000))

    def fail(batch, rows):
        if next(calls) == 3:
            raise ValueError("enough")

    system.trainer.step = fail
    with pytest.raises(ValueError, match="enough"):
        timed(system, 1)
    system.trainer.step = step
    system.audit(1)
    assert run(system, 2).loss == run(plain, 2).loss


@pytest.mark.parametrize("dies", ["sampler", "producer"])
def test_death_of_a_process_is_named_and_leaves_none(dies, three):
    system = three(**SMALL)
    sampler, producer = sampler_of(system), psutil.Process(system.schedule.pid)
    os.kill({"sampler": sampler, "producer": producer}[dies].pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(ProducerDiedError, match=f"the {dies}'s process died by SIGKILL; run"):
            timed(system, 0)
    system.close()
    deadline = time.monotonic() + 20
    while alive(sampler.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(sampler.pid)


def test_failed_setup_of_the_sampler_has_a_reason(small_graph):
    settings = {"schedule": "producer-consumer", **THREE}
    system = make(small_graph, settings=settings, setup=False, **SMALL)
    system.cell.recipe["sampler"]["pick"] = "weighted_alias"
    system.schedule = system.recipe.schedule.build(system.job)
    with pytest.raises(UnsupportedError, match="needs edge weights, and 'small' stores none"):
        system.schedule.start(None)
    system.close()


def test_the_sampler_of_three_processes_samples_on_the_cpu():
    on_gpu = find("zero-copy").resolved(THREE, "cuda", Until.COMPUTE)
    assert "give sampler.topology=cpu instead of gpu, or processes=2" in on_gpu.unsupported
    on_cpu = find("zero-copy").resolved({**THREE, "sampler.topology": "cpu"}, "cuda", Until.COMPUTE)
    assert not on_cpu.unsupported


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def test_a_daemon_that_does_not_answer_is_refused_with_its_reason(tmp_path, monkeypatch):
    silent = script(tmp_path / "silent", "print('Cannot find MPS control daemon process')")
    monkeypatch.setattr(mps, "CONTROL", silent)
    with pytest.raises(UnsupportedError) as refused:
        mps.check_daemon()
    assert "(Cannot find MPS control daemon process); start it before the run" in str(refused.value)
    monkeypatch.setattr(mps, "CONTROL", script(tmp_path / "runs", "input()"))
    mps.check_daemon()


def test_a_share_without_effect_is_refused():
    mps.check_share("schedule.share", 10, 14, 132)
    mps.check_share("schedule.share", 100, 132, 0)
    for share, processors in ((10, 132), (10, 16), (90, 132)):
        with pytest.raises(UnsupportedError, match=f"share={share} has no effect: the process has"):
            mps.check_share("schedule.share", share, processors, 132)


def test_a_process_gets_its_share_by_its_environment(monkeypatch):
    monkeypatch.setenv(mps.SHARE, "70")
    assert mps.environment(10)[mps.SHARE] == "10"
    assert mps.SHARE not in mps.environment(100)


def test_the_worker_limits_itself_before_it_uses_the_gpu(small_graph, monkeypatch):
    monkeypatch.setenv(mps.SHARE, "100")  # restored at the end
    cell = make(small_graph, setup=False, settings={"schedule": "producer-consumer"}).cell
    shares = {**cell.recipe["schedule"], "share": 10, "trainer_share": 90}
    start_early(replace(cell, device="cuda", recipe={**cell.recipe, "schedule": shares}))
    assert os.environ[mps.SHARE] == "90"
    assert producer_consumer._started_early == []  # MPS may be missing


@pytest.mark.skipif(torch.cuda.is_available(), reason="for a machine whose processes find no GPU")
def test_processors_of_a_gpu_that_a_new_process_cannot_use():
    with pytest.raises(UnsupportedError, match="a new process cannot use the GPU"):
        mps.whole_processors(0)
