"""Parts of an epoch on threads: waiting for one another, and ending together."""

import sys
import threading
from contextlib import nullcontext

import pytest
import torch
from compose import assert_no_thread_is_left

from gnnbench.pipelines.threads import SWITCH_INTERVAL_S, Progress


def test_parts_wait_for_one_another_and_all_end():
    progress, calls = Progress(), []

    def own():
        progress.reach("there", 2)
        calls.append("own")

    def other():
        calls.append("other")
        for _ in range(2):
            progress.note("there")

    progress.run(own, other)
    assert calls == ["other", "own"]
    assert_no_thread_is_left()


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("guilty", [0, 1, 2])
def test_the_first_error_ends_all_parts_and_is_raised(guilty, kind):
    error, progress = kind("mine"), Progress()

    def part(number):
        def work():
            if number == guilty:
                raise error
            progress.reach("never", 1)

        return work

    with pytest.raises(kind) as raised:
        progress.run(*map(part, range(3)))
    assert raised.value is error
    assert_no_thread_is_left()


@pytest.mark.parametrize("fails", [False, True])
def test_switch_interval_is_shorter_while_parts_run(fails):
    before, progress, intervals = sys.getswitchinterval(), Progress(), []

    def own():
        intervals.append(sys.getswitchinterval())
        if fails:
            raise ValueError

    with pytest.raises(ValueError) if fails else nullcontext():
        progress.run(own)
    assert intervals == [pytest.approx(SWITCH_INTERVAL_S)] and sys.getswitchinterval() == before


def test_an_interrupt_while_others_end_leaves_no_thread(monkeypatch):
    """Another interrupt is raised by the join; the first error is kept."""
    progress, first, ends = Progress(), ValueError("first"), threading.Event()
    join, raised = threading.Thread.join, []

    def interrupted(thread):
        if not raised:
            raised.append(thread)
            ends.set()
            raise KeyboardInterrupt
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", interrupted)

    def own():
        raise first

    with pytest.raises(ValueError, match="first"):
        progress.run(own, lambda: ends.wait(30))
    assert raised
    assert_no_thread_is_left()


def test_threads_that_cannot_start_end_those_that_did(monkeypatch):
    start, started = threading.Thread.start, []

    def once(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", once)
    progress = Progress()
    with pytest.raises(RuntimeError, match="can't start"):
        progress.run(lambda: None, lambda: progress.reach("never", 1), lambda: None)
    assert_no_thread_is_left()


def test_threads_inherit_the_number_of_torch_threads():
    before, counts = torch.get_num_threads(), []
    torch.set_num_threads(1 if before > 1 else 2)
    try:
        Progress().run(lambda: None, lambda: counts.append(torch.get_num_threads()))
        assert counts == [torch.get_num_threads()]
    finally:
        torch.set_num_threads(before)
