"""What is left to the harness, how threads run, and CPU use between commands."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from gnnbench.harness import isolation
from gnnbench.harness.isolation import Rest, Running

LEAVES = (
    "import os, sys\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    os.dup2(os.open(os.devnull, os.O_RDWR), 1)\n"
    "    os.execvp('sleep', ['sleep', '60'])\n"
)


@pytest.fixture
def left_behind():
    """A process whose parent has ended."""
    isolation.adopt()
    before = time.time()
    subprocess.run([sys.executable, "-c", LEAVES], env={**os.environ, isolation.MARK: "w1"})
    end = time.monotonic() + 10
    while not isolation.strays((), before) and time.monotonic() < end:
        time.sleep(0.01)
    yield before
    isolation.end(isolation.strays((), before))


def test_what_outlives_its_parent_is_found_and_ended(left_behind):
    (process,) = isolation.strays((), left_behind)
    assert isolation.mark(process) == "w1"
    assert "1 of its processes (" in isolation.strays_fault([process])
    assert isolation.strays([process.pid], left_behind) == []  # a worker
    assert isolation.strays((), time.time() + 60) == []  # older than all of them
    isolation.end([process])
    assert not psutil.pid_exists(process.pid)
    assert isolation.strays((), left_behind) == []


def test_a_child_of_ones_own_is_not_left_behind():
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert isolation.strays((), 0.0) == []
    finally:
        child.kill()
        child.wait()
    assert isolation.strays_fault([]) == ""


@pytest.mark.parametrize("listed", sorted({isolation.LISTED, False}))
def test_a_family_is_a_process_and_all_below_it(listed, monkeypatch):
    monkeypatch.setattr(isolation, "LISTED", listed)
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as one:
        below = int(one.stdout.readline())
        assert [p.pid for p in isolation.family(one.pid)] == [one.pid, below]
        assert [p.pid for p in isolation.children(one.pid)] == [below]
        isolation.end([psutil.Process(one.pid)])
    with pytest.raises(psutil.NoSuchProcess):
        isolation.children(one.pid)


def test_threads_run_as_the_harness_does():
    own = Running.own()
    assert own.cores == os.sched_getaffinity(0)
    assert isolation.running(os.getpid()) == {own}
    assert isolation.running_doubt({own}, own) == ""


def test_another_priority_or_other_cores_are_a_doubt(monkeypatch):
    own = Running(frozenset({0, 1}), 0, 0)
    assert "priority" in isolation.running_doubt({own, replace(own, nice=5)}, own)
    assert "priority" in isolation.running_doubt({own, replace(own, policy=3)}, own)
    pinned = replace(own, cores=frozenset({1}))
    assert "cores" in isolation.running_doubt({own, pinned}, own)
    monkeypatch.setenv("OMP_PROC_BIND", "true")  # the user asks for it
    assert isolation.running_doubt({own, pinned}, own) == ""
    samples = [{"isolation": ""}, {"isolation": "x"}, {}]
    assert isolation.changes_doubt(samples) == "x, around 1 of 3 epochs"
    assert isolation.changes_doubt(samples[:1]) == ""


def test_a_process_that_has_ended_runs_in_no_way():
    child = subprocess.Popen(["true"])
    child.wait()
    assert isolation.running(child.pid) == set()


def test_cpu_time_between_commands_is_a_doubt():
    rest = Rest()
    rest.end(1.0)  # before the first command nothing is known
    rest.begin(2.0)
    rest.end(2.5)
    rest.begin(7.0)
    rest.end(7.25)
    found = rest.taken()
    assert found["rest_cpu_s"] == 0.75
    assert rest.taken() == {"rest_cpu_s": 0.0, "rest_s": 0.0}
    assert "75% of a core" in isolation.rest_doubt([{**found, "rest_s": 1.0}])
    assert isolation.rest_doubt([{"rest_cpu_s": 0.04, "rest_s": 0.1}]) == ""  # ticks
    assert isolation.rest_doubt([{"rest_cpu_s": 0.06, "rest_s": 1.0}]) == ""
    assert isolation.rest_doubt([{}]) == ""
