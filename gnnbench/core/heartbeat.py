"""Heartbeats of the ranks of one host, in a shared-memory table with one row per rank."""

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

TICK_S = 0.2  # polling interval
NAME = "gnnbench:ranks"  # name of the memory in /proc
# State of a rank: it waits for a command; it works, by the kernel's counters; it runs batches,
# each phase within ``gnnbench.core.process_activity.SILENCE_S``.
RESTS, WORKS, RUNS = 0.0, 1.0, 2.0
_DOES, _MOVED, _WAITS = range(3)
_WIDTH = 3


class Board:
    """Table of all ranks: state, time of the last progress (s of CLOCK_MONOTONIC), and number of
    threads that wait for other ranks.

    The memory has no name in a file system and ends with the last process that maps it.
    ``descriptor``: another process's table, which is mapped and closed; None creates a new one.
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

    def get(self, rank: int, field: int) -> float:
        """A value of a rank's row; 0 if the table is closed."""
        return 0.0 if self._lines is None else self._lines[rank * _WIDTH + field]

    def put(self, rank: int, field: int, value: float) -> None:
        """Write a value of a rank's row; ignored if the table is closed."""
        if self._lines is not None:
            self._lines[rank * _WIDTH + field] = value

    def does(self, rank: int) -> float:
        """``RESTS``, ``WORKS`` or ``RUNS``."""
        return self.get(rank, _DOES)

    def moved(self, rank: int) -> float:
        """Time of the rank's last progress (s of CLOCK_MONOTONIC)."""
        return self.get(rank, _MOVED)

    def waits(self, rank: int) -> bool:
        """Whether the rank waits for another rank."""
        return self.get(rank, _WAITS) > 0

    def close(self) -> None:
        """Unmap the table; other processes keep theirs."""
        if (lines := self._lines) is not None:
            self._lines = None
            lines.release()
            self._memory.close()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Pulse:
    """Writes the row of one rank from its own process; call ``beat`` every ``TICK_S``."""

    def __init__(self, board: Board, rank: int) -> None:
        self._board, self._rank = board, rank
        self._timeline: Timeline | None = None
        self._known = (0, 0)  # spans that have ended on the host, and on the device
        self._lock, self._waits = threading.Lock(), 0

    @classmethod
    def alone(cls) -> Pulse:
        """For a process that is not monitored: writes nothing."""
        board = Board(1)
        board.close()
        return cls(board, 0)

    def now(self, does: float, timeline: Timeline | None = None) -> None:
        """Set the rank's state; ``timeline`` records its spans."""
        self._timeline, self._known = timeline, (0, 0)
        self._move()
        self._board.put(self._rank, _DOES, does)

    def moves(self) -> None:
        """Record progress of a process that this rank waits for."""
        self._move()

    def _move(self) -> None:
        self._board.put(self._rank, _MOVED, time.monotonic())

    def _wait(self, more: int) -> None:
        with self._lock:
            self._waits += more
            self._board.put(self._rank, _WAITS, self._waits)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the block as waiting for other ranks, so that it does not count as a hang."""
        self._wait(1)
        try:
            yield
        finally:
            self._move()
            self._wait(-1)

    def beat(self) -> None:
        """Record progress if a span has ended on the host or the device since the last call."""
        if (timeline := self._timeline) is None:
            return
        ended = len(timeline.marks)
        known = ended, timeline.passed(min(self._known[1], ended))
        if known != self._known:
            self._known = known
            self._move()

    def beats(self) -> None:
        """Call ``beat`` periodically on a thread until the process ends."""

        def run() -> None:
            while True:
                self.beat()
                time.sleep(TICK_S)

        threading.Thread(target=run, name="pulse", daemon=True).start()
