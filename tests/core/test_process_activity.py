"""Whether a process works, waits or is stopped, by what the kernel counts of it."""

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
    """Runs Python, which says a word when it has begun."""
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


def look_for(still, seconds):
    """The last look of several, as a watch takes them."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = still.look()
        time.sleep(0.1)
    return found


def test_who_sleeps_is_still_and_who_computes_is_not(program):
    sleeps, computes = program("time.sleep(60)"), program("[0 for _ in iter(int, 1)]")
    polls = program("[time.sleep(0.02) for _ in iter(int, 1)]")  # as whoever waits for another
    looks = {p.pid: Stillness(p.pid) for p in (sleeps, computes, polls)}
    until, found = time.monotonic() + 30.0, {}
    # On a busy machine who polls is met now and then while it waits for a core.
    while not found or found[sleeps.pid][0] < 3.5 or found[polls.pid][0] < 2.0:
        assert time.monotonic() < until, found
        found = {pid: one.look() for pid, one in looks.items()}
        time.sleep(0.1)
    assert found[computes.pid][0] < 2.0  # on a busy machine it has a part of a core
    assert all(stopped == 0.0 for _, stopped in found.values())


def test_who_is_stopped_is_known_at_once_and_when_it_goes_on(program):
    computes = program("[0 for _ in iter(int, 1)]")
    still = Stillness(computes.pid)
    os.kill(computes.pid, signal.SIGSTOP)
    idle, stopped = look_for(still, 1.5)
    assert idle > 1.0 and stopped > 1.0
    os.kill(computes.pid, signal.SIGCONT)
    assert look_for(still, 1.5)[1] < 0.5


def test_who_has_ended_is_not_said_to_hang(program):
    ends = program("pass")
    still = Stillness(ends.pid)
    ends.wait()
    assert process_activity.signs(ends.pid) is None
    assert still.look() == (0.0, 0.0)


def test_who_gets_hardly_a_core_and_wants_one_works(monkeypatch):
    now, told = [1000.0], process_activity.Signs(False, False, 5.0, 7)
    monkeypatch.setattr(process_activity.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(process_activity, "signs", lambda pid: told)
    still = Stillness(1)
    found = []
    for wants in (False, True, False, True, True, True, False):
        now[0] += 1.0
        told = told._replace(wants=wants)
        found.append(still.look()[0])
    assert found == [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 1.0]  # once is a look at others


def test_who_waits_for_a_disk_works():
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
