"""Whether a process works, waits or is stopped, by the kernel's counters."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gnnbench.core import process_activity
from gnnbench.core.process_activity import Stillness


@pytest.fixture
def program():
    """Starts Python programs and waits until they run."""
    running = []

    def start(text):
        words = [sys.executable, "-c", f"import os, time; print('on', flush=True); {text}"]
        running.append(subprocess.Popen(words, stdout=subprocess.PIPE))
        assert running[-1].stdout.read(2) == b"on"
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()
        one.stdout.close()


def poll_for(still, seconds):
    """Poll for some seconds; return the last reading."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reading = still.look()
        time.sleep(0.1)
    return reading


def test_sleeping_process_is_idle_and_computing_is_not(program):
    sleeps, computes = program("time.sleep(60)"), program("[0 for _ in iter(int, 1)]")
    polls = program(
        "[time.sleep(0.02) for _ in iter(int, 1)]"
    )  # as a process that waits for another
    monitors = {p.pid: Stillness(p.pid) for p in (sleeps, computes, polls)}
    deadline, readings = time.monotonic() + 30.0, {}
    # On a busy machine, the polling process sometimes waits for a core.
    while not readings or readings[sleeps.pid][0] < 3.5 or readings[polls.pid][0] < 2.0:
        assert time.monotonic() < deadline, readings
        readings = {pid: one.look() for pid, one in monitors.items()}
        time.sleep(0.1)
    assert readings[computes.pid][0] < 2.0  # it may have only a part of a core
    assert all(stopped == 0.0 for _, stopped in readings.values())


def test_stopped_and_continued_process(program):
    computes = program("[0 for _ in iter(int, 1)]")
    still = Stillness(computes.pid)
    os.kill(computes.pid, signal.SIGSTOP)
    idle, stopped = poll_for(still, 1.5)
    assert idle > 1.0 and stopped > 1.0
    os.kill(computes.pid, signal.SIGCONT)
    assert poll_for(still, 1.5)[1] < 0.5


def test_ended_process_is_not_idle(program):
    ends = program("pass")
    still = Stillness(ends.pid)
    ends.wait()
    assert process_activity.signs(ends.pid) is None
    assert still.look() == (0.0, 0.0)


def test_process_that_waits_for_a_core_is_active(monkeypatch):
    now, signs = [1000.0], process_activity.Signs(False, False, 5.0, 7)
    monkeypatch.setattr(process_activity.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(process_activity, "signs", lambda pid: signs)
    still = Stillness(1)
    readings = []
    for wants in (False, True, False, True, True, True, False):
        now[0] += 1.0
        signs = signs._replace(wants=wants)
        readings.append(still.look()[0])
    assert readings == [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 1.0]  # a single wait for a core is ignored


def test_process_that_waits_for_a_disk_is_active():
    before = process_activity.signs(os.getpid())
    after = before._replace(disk=before.disk + 1)
    still = Stillness(os.getpid())
    still._since -= 10.0
    still._last = before._replace(cpu_s=before.cpu_s + 100.0)  # no time was used
    signs_of, process_activity.signs = process_activity.signs, lambda pid: after
    try:
        assert still.look()[0] == 0.0
    finally:
        process_activity.signs = signs_of
