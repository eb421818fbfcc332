"""The heartbeat of ranks: state, time of the last progress, and waiting."""

import os
import time
from pathlib import Path

from gnnbench.core.heartbeat import NAME, RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.measure.timeline import Timeline


class Device:
    """A clock whose marks are passed as by a device."""

    lane = "stream"

    def __init__(self):
        self.begun = self.done = 0

    def mark(self):
        self.begun += 1
        return self.begun

    def passed(self, mark):
        return mark <= self.done


def spans(timeline, number):
    for batch in range(number):
        with timeline.span("sample", batch):
            pass


def open_boards():
    """Number of open and of mapped boards of this process."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    return sum(NAME in link for link in links), Path("/proc/self/maps").read_text().count(NAME)


def test_board_is_shared_and_freed():
    before = open_boards()
    board = Board(3)
    other = Board(3, os.dup(board.descriptor))
    Pulse(other, 2).now(WORKS)
    assert (board.does(2), board.does(1)) == (WORKS, RESTS)
    assert board.moved(2) > 0 == board.moved(1)
    assert open_boards() > before
    for one in (board, other):
        one.close()
        Pulse(one, 1).now(RUNS)  # has no effect
        assert one.does(1) == RESTS
    assert open_boards() == before


def test_host_spans_are_progress_once():
    board = Board(1)
    pulse, timeline = Pulse(board, 0), Timeline.on("cpu")
    timeline.start()
    pulse.now(RUNS, timeline)
    moved_at = board.moved(0)
    pulse.beat()
    assert board.moved(0) == moved_at
    spans(timeline, 3)
    pulse.beat()
    assert (first := board.moved(0)) > moved_at
    pulse.beat()
    assert board.moved(0) == first
    timeline.start()  # the next epoch starts with fewer spans
    spans(timeline, 1)
    pulse.beat()
    assert board.moved(0) > first


def test_device_progress_is_progress():
    board, device = Board(1), Device()
    pulse, timeline = Pulse(board, 0), Timeline(device)
    pulse.now(RUNS, timeline)
    spans(timeline, 100)
    pulse.beat()
    moved = board.moved(0)
    for device.done in (2, 3, 4, 6, 120, 200):
        was = timeline.passed(0)
        pulse.beat()
        assert was == device.done // 2 == timeline.passed(was)
        assert (board.moved(0) > moved) == (device.done != 3)  # half of a span is no progress
        moved = board.moved(0)
    pulse.beat()
    assert board.moved(0) == moved


def test_waiting_resets_the_time_of_progress():
    board = Board(1)
    pulse = Pulse(board, 0)
    pulse.now(RUNS)
    at = time.monotonic()
    with pulse.waiting(), pulse.waiting():
        assert board.waits(0)
    assert not board.waits(0) and board.moved(0) >= at
