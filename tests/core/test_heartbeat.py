"""A rank's line on the board: what it does, when it got on, whether it waits."""

import os
import time
from pathlib import Path

from gnnbench.core.heartbeat import NAME, RESTS, RUNS, WORKS, Board, Pulse
from gnnbench.measure.timeline import Timeline


class Device:
    """A clock whose marks are passed as a device would pass them."""

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


def held():
    """How often this process has boards' memory open, and mapped."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    return sum(NAME in link for link in links), Path("/proc/self/maps").read_text().count(NAME)


def test_two_processes_see_one_board_which_is_gone_with_them():
    before = held()
    board = Board(3)
    other = Board(3, os.dup(board.descriptor))
    Pulse(other, 2).now(WORKS)
    assert (board.does(2), board.does(1)) == (WORKS, RESTS)
    assert board.moved(2) > 0 == board.moved(1)
    assert held() > before
    for one in (board, other):
        one.close()
        Pulse(one, 1).now(RUNS)  # nobody sees it
        assert one.does(1) == RESTS
    assert held() == before


def test_spans_of_the_host_are_seen_once():
    board = Board(1)
    pulse, timeline = Pulse(board, 0), Timeline.on("cpu")
    timeline.start()
    pulse.now(RUNS, timeline)
    at = board.moved(0)
    pulse.beat()
    assert board.moved(0) == at
    spans(timeline, 3)
    pulse.beat()
    assert (first := board.moved(0)) > at
    pulse.beat()
    assert board.moved(0) == first
    timeline.start()  # another epoch has fewer at first
    spans(timeline, 1)
    pulse.beat()
    assert board.moved(0) > first


def test_work_that_waits_on_a_device_is_getting_on_long_after_the_host_began_it():
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
        assert (board.moved(0) > moved) == (device.done != 3)  # half of a span is none
        moved = board.moved(0)
    pulse.beat()
    assert board.moved(0) == moved


def test_who_waits_owes_nothing_and_its_time_begins_anew():
    board = Board(1)
    pulse = Pulse(board, 0)
    pulse.now(RUNS)
    at = time.monotonic()
    with pulse.waiting(), pulse.waiting():
        assert board.waits(0)
    assert not board.waits(0) and board.moved(0) >= at
