"""Whether a process does anything, as the kernel counts it: it need not say a word itself."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

SILENCE_S = 45.0  # in which whoever is waited for does nothing: then it hangs
SHARE = 0.05  # of a core: who uses less looks now and then whether others are done
LEAST_S = 1.0  # over which that share is looked at; the kernel counts by hundredths
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Signs(NamedTuple):
    """What a process has done so far. ``stopped``: by a signal, which a debugger is not;
    ``wants``: its main thread runs or would, had it a core; ``disk``: pages and bytes from and to
    disks."""

    stopped: bool
    wants: bool
    cpu_s: float
    disk: int


def signs(pid: int) -> Signs | None:
    """Of a process with all its threads, without its children; None where it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if stat[0] in "ZX":
            return None
        told = Path(f"/proc/{pid}/io").read_text().split()
    except PermissionError:
        told = []
    except OSError:
        return None
    disk = int(stat[9])  # faults that read a page from a disk
    for name, value in zip(told[::2], told[1::2], strict=True):
        if name in ("read_bytes:", "write_bytes:"):
            disk += int(value)
    return Signs(stat[0] == "T", stat[0] == "R", (int(stat[11]) + int(stat[12])) * _TICK_S, disk)


class Stillness:
    """For how long a process has done nothing, by looks at it now and then."""

    def __init__(self, pid: int) -> None:
        self._pid, self._last = pid, signs(pid)
        self._since = self._ran = time.monotonic()
        self._wanted = False

    def look(self) -> tuple[float, float]:
        """Seconds for which it has done nothing, and for which it has been stopped; 0 of one that
        has ended."""
        now, found = time.monotonic(), signs(self._pid)
        if found is None or self._last is None:
            return 0.0, 0.0
        if not found.stopped:
            self._ran = now
        length = now - self._since
        used = found.cpu_s - self._last.cpu_s
        # On a machine with more processes than cores who works may hardly get one.
        wanted, self._wanted = self._wanted and found.wants, found.wants
        works = length >= LEAST_S and (wanted or used >= SHARE * length)
        if works or found.disk != self._last.disk:
            self._since, self._last = now, found
        return now - self._since, now - self._ran
