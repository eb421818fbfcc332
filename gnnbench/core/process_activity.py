"""Detect idle and hung processes from kernel counters, without their cooperation."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

SILENCE_S = 45.0  # a process without activity for this long is considered hung
SHARE = 0.05  # of a core; a process below it only polls for others
LEAST_S = 1.0  # shortest interval for that share; the kernel counts in ticks of 10 ms
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Signs(NamedTuple):
    """Kernel counters of a process.

    ``stopped``: stopped by a signal (not by a debugger); ``wants``: the main thread is runnable;
    ``disk``: bytes from and to disks, plus major page faults.
    """

    stopped: bool
    wants: bool
    cpu_s: float
    disk: int


def signs(pid: int) -> Signs | None:
    """Counters of a process and its threads, without children; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if stat[0] in "ZX":
            return None
        io = Path(f"/proc/{pid}/io").read_text().split()
    except PermissionError:
        io = []
    except OSError:
        return None
    disk = int(stat[9])  # faults that read a page from a disk
    for name, value in zip(io[::2], io[1::2], strict=True):
        if name in ("read_bytes:", "write_bytes:"):
            disk += int(value)
    return Signs(stat[0] == "T", stat[0] == "R", (int(stat[11]) + int(stat[12])) * _TICK_S, disk)


class Stillness:
    """Measures for how long a process has been idle, by sampling its counters."""

    def __init__(self, pid: int) -> None:
        self._pid, self._last = pid, signs(pid)
        self._since = self._ran = time.monotonic()
        self._wanted = False

    def look(self) -> tuple[float, float]:
        """Seconds of idleness and seconds since it was stopped; 0 and 0 if it has ended."""
        now, current = time.monotonic(), signs(self._pid)
        if current is None or self._last is None:
            return 0.0, 0.0
        if not current.stopped:
            self._ran = now
        length = now - self._since
        used = current.cpu_s - self._last.cpu_s
        # On an oversubscribed machine a working process may get little CPU time.
        wanted, self._wanted = self._wanted and current.wants, current.wants
        works = length >= LEAST_S and (wanted or used >= SHARE * length)
        if works or current.disk != self._last.disk:
            self._since, self._last = now, current
        return now - self._since, now - self._ran
