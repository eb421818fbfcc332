"""Stray processes, placement of threads, and CPU use between commands."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from gnnbench.harness import stray_processes, thread_placement
from gnnbench.harness.thread_placement import IdleCpuMeter, Placement
from gnnbench.schema.samples import EpochSample

SPAWN_ORPHAN = (
    "import os, sys\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    os.dup2(os.open(os.devnull, os.O_RDWR), 1)\n"
    "    os.execvp('sleep', ['sleep', '60'])\n"
)


@pytest.fixture
def orphan():
    """A process whose parent has ended."""
    stray_processes.adopt_orphans()
    before = time.time()
    subprocess.run(
        [sys.executable, "-c", SPAWN_ORPHAN], env={**os.environ, stray_processes.MARK: "w1"}
    )
    end = time.monotonic() + 10
    while not stray_processes.find_strays((), before) and time.monotonic() < end:
        time.sleep(0.01)
    yield before
    stray_processes.kill_strays(stray_processes.find_strays((), before))


def test_orphans_are_found_and_killed(orphan):
    (process,) = stray_processes.find_strays((), orphan)
    assert stray_processes.mark_of(process) == "w1"
    assert "1 of its processes (" in stray_processes.strays_fault([process])
    assert stray_processes.find_strays([process.pid], orphan) == []  # a worker
    assert stray_processes.find_strays((), time.time() + 60) == []  # older than all of them
    stray_processes.kill_strays([process])
    assert not psutil.pid_exists(process.pid)
    assert stray_processes.find_strays((), orphan) == []


def test_child_of_this_process_is_no_stray():
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert stray_processes.find_strays((), 0.0) == []
    finally:
        child.kill()
        child.wait()
    assert stray_processes.strays_fault([]) == ""


@pytest.mark.parametrize("listed", sorted({stray_processes.LISTED, False}))
def test_process_tree_is_a_process_and_its_descendants(listed, monkeypatch):
    monkeypatch.setattr(stray_processes, "LISTED", listed)
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as one:
        child = int(one.stdout.readline())
        assert [p.pid for p in stray_processes.process_tree(one.pid)] == [one.pid, child]
        assert [p.pid for p in stray_processes.children(one.pid)] == [child]
        stray_processes.kill_strays([psutil.Process(one.pid)])
    with pytest.raises(psutil.NoSuchProcess):
        stray_processes.children(one.pid)


def test_placement_of_this_process_is_no_doubt():
    own = Placement.of_this_process()
    assert own.cores == os.sched_getaffinity(0)
    assert thread_placement.placements(os.getpid()) == {own}
    assert thread_placement.placement_doubt({own}, own) == ""


def test_other_priority_or_cores_are_a_doubt(monkeypatch):
    own = Placement(frozenset({0, 1}), 0, 0)
    assert "priority" in thread_placement.placement_doubt({own, replace(own, nice=5)}, own)
    assert "priority" in thread_placement.placement_doubt({own, replace(own, policy=3)}, own)
    moved, traced = replace(own, groups="0::/frozen"), replace(own, tracer=7)
    assert "control group" in thread_placement.placement_doubt({own, moved}, own)
    assert "traced" in thread_placement.placement_doubt({own, traced}, own)
    pinned = replace(own, cores=frozenset({1}))
    assert "cores" in thread_placement.placement_doubt({own, pinned}, own)
    monkeypatch.setenv("OMP_PROC_BIND", "true")  # the user asks for it
    assert thread_placement.placement_doubt({own, pinned}, own) == ""
    samples = [EpochSample(isolation=text) for text in ("", "x", "")]
    assert thread_placement.changes_doubt(samples) == "x, around 1 of 3 epochs"
    assert thread_placement.changes_doubt(samples[:1]) == ""


def test_ended_process_has_no_placement():
    child = subprocess.Popen(["true"])
    child.wait()
    assert thread_placement.placements(child.pid) == set()


def test_cpu_use_between_commands_is_a_doubt():
    def doubt(**times):
        return thread_placement.idle_cpu_doubt([EpochSample(**times)])

    meter = IdleCpuMeter()
    meter.end(1.0)  # ignored before the first command
    meter.begin(2.0)
    meter.end(2.5)
    meter.begin(7.0)
    meter.end(7.25)
    usage = meter.take()
    assert usage["rest_cpu_s"] == 0.75
    assert meter.take() == {"rest_cpu_s": 0.0, "rest_s": 0.0}
    assert "75% of a core" in doubt(**{**usage, "rest_s": 1.0})
    assert doubt(rest_cpu_s=0.04, rest_s=0.1) == ""  # ticks
    assert doubt(rest_cpu_s=0.06, rest_s=1.0) == ""
    assert doubt() == ""
