"""How ranks of one host show each other that they get on: a line each in memory that all map."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnbench.measure.timeline import Timeline

TICK_S = 0.2  # between looks
NAME = "gnnbench:ranks"  # of the memory, as /proc shows it
# What a rank does: it waits for a word; it works, by whatever the kernel counts of it; it runs
# batches, each phase of one within ``gnnbench.core.process_activity.SILENCE_S``.
RESTS, WORKS, RUNS = 0.0, 1.0, 2.0
_DOES, _MOVED, _WAITS = range(3)
_WIDTH = 3


class Board:
    """The lines of all ranks: what each does, when it last got on (s of CLOCK_MONOTONIC), and how
    many of its threads wait for others.

    The memory has no name in a file system and goes with the last process that maps it.
    ``descriptor``: of another process's board, which is mapped here and closed; None: a new one.
    """

    def __init__(self, ranks: int, descriptor: int | None = None) -> None:
        size = ranks * _WIDTH * 8
        self.descriptor = -1
        if descriptor is None:
            descriptor = self.descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
            os.ftruncate(descriptor, size)
        self._memory = mmap.mmap(descriptor, size)
        self._lines: memoryview[float] | None = memoryview(self._memory).cast("d")
        if self.descriptor < 0:
            os.close(descriptor)

    def get(self, rank: int, what: int) -> float:
        """A number of a rank's line; 0 of one that is closed."""
        return 0.0 if self._lines is None else self._lines[rank * _WIDTH + what]

    def put(self, rank: int, what: int, value: float) -> None:
        """Write it, for the others to see; in one that is closed nobody does."""
        if self._lines is not None:
            self._lines[rank * _WIDTH + what] = value

    def does(self, rank: int) -> float:
        """``RESTS``, ``WORKS`` or ``RUNS``."""
        return self.get(rank, _DOES)

    def moved(self, rank: int) -> float:
        """When the rank last got on."""
        return self.get(rank, _MOVED)

    def waits(self, rank: int) -> bool:
        """Whether it waits for another rank."""
        return self.get(rank, _WAITS) > 0

    def close(self) -> None:
        """Give it up; who has mapped it keeps it."""
        if (lines := self._lines) is not None:
            self._lines = None
            lines.release()
            self._memory.close()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Pulse:
    """One rank's line, written by its own process; ``beat`` is to be called every ``TICK_S``."""

    def __init__(self, board: Board, rank: int) -> None:
        self._board, self._rank = board, rank
        self._timeline: Timeline | None = None
        self._known = (0, 0)  # spans of it that the host has ended, and the device
        self._lock, self._waits = threading.Lock(), 0

    @classmethod
    def alone(cls) -> Pulse:
        """Of a process that nobody watches: it is written nowhere."""
        board = Board(1)
        board.close()
        return cls(board, 0)

    def now(self, does: float, timeline: Timeline | None = None) -> None:
        """What the rank does from now on; ``timeline`` is where its spans are seen."""
        self._timeline, self._known = timeline, (0, 0)
        self._move()
        self._board.put(self._rank, _DOES, does)

    def _move(self) -> None:
        self._board.put(self._rank, _MOVED, time.monotonic())

    def _wait(self, more: int) -> None:
        with self._lock:
            self._waits += more
            self._board.put(self._rank, _WAITS, self._waits)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the rank waits for others, which is nothing that it owes them."""
        self._wait(1)
        try:
            yield
        finally:
            self._move()
            self._wait(-1)

    def beat(self) -> None:
        """Look whether a span has ended since: on the host, or of what waits on the device."""
        if (timeline := self._timeline) is None:
            return
        ended = len(timeline.marks)
        known = ended, timeline.passed(min(self._known[1], ended))
        if known != self._known:
            self._known = known
            self._move()

    def beats(self) -> None:
        """Beat on a thread, until the process ends."""

        def run() -> None:
            while True:
                self.beat()
                time.sleep(TICK_S)

        threading.Thread(target=run, name="pulse", daemon=True).start()
