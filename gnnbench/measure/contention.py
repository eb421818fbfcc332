"""What else uses the cores: run-queue delay, stolen time, suspends, other programs by name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name.
_PARENT, _USER, _SYSTEM, _START, _CORE = 1, 11, 12, 19, 36
LEAST_SHARE = 0.05  # of a core: programs that use less are not named
MOST_NAMES = 3


class Delay(NamedTuple):
    """Seconds that threads of a process were ready to run and waited for a core, so far."""

    main: float
    total: float  # of all its threads that live


def run_delay(pid: int) -> Delay:
    """Run-queue delay of a process; 0 where it has ended or the kernel does not count it."""
    main = total = 0.0
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            delay = _delay_s(task / "schedstat")
            total += delay
            main += delay if task.name == str(pid) else 0.0
    return Delay(main, total)


def own_run_delay_s() -> float:
    """Run-queue delay of the calling thread so far (s)."""
    return _delay_s(Path("/proc/thread-self/schedstat"))


def _delay_s(path: Path) -> float:
    try:
        return int(path.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def stolen_seconds() -> float:
    """CPU time that the hypervisor gave to others so far, of the cores that this process may use
    (10 ms steps)."""
    cores = os.sched_getaffinity(0)
    times = psutil.cpu_times(percpu=True)
    return float(sum(getattr(t, "steal", 0.0) for i, t in enumerate(times) if i in cores))


def suspended_seconds() -> float:
    """Time for which the machine was suspended since it booted (s)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Process(NamedTuple):
    """A process at one moment; ``core`` is the one that it ran on last."""

    name: str
    parent: int
    cpu_s: float
    core: int


Processes = Mapping[tuple[int, int], Process]  # by pid and start


def processes() -> Processes:
    """All processes that are visible from here, by pid and start."""
    programs = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended
            head, _, tail = (entry / "stat").read_text(errors="replace").rpartition(")")
            stat = tail.split()
            programs[int(entry.name), int(stat[_START])] = Process(
                _printable(head.partition("(")[2]), int(stat[_PARENT]),
                (int(stat[_USER]) + int(stat[_SYSTEM])) * _TICK_S, int(stat[_CORE]),
            )  # fmt: skip
    return programs


def _printable(name: str) -> str:
    """A program may call itself anything, and terminals obey escapes."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def others_cpu(
    before: Processes, after: Processes, own: int, cores: Iterable[int]
) -> dict[str, float]:
    """CPU time between two moments (s) by name of program, without process ``own`` and its family.

    ``cores``: programs that ran elsewhere are left out. A new process counts from its start, one
    that has ended is not seen.
    """
    family, allowed = _family(after, own) | _family(before, own), set(cores)
    used: dict[str, float] = {}
    for key, process in after.items():
        if key[0] in family or process.core not in allowed:
            continue
        spent = process.cpu_s - (before[key].cpu_s if key in before else 0.0)
        if spent > 0:
            used[process.name] = used.get(process.name, 0.0) + spent
    return used


def _family(known: Processes, pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for (child, _), process in known.items():
        children.setdefault(process.parent, []).append(child)
    tree = [pid]
    for one in tree:
        tree += children.get(one, [])
    return set(tree)


class Programs:
    """CPU time of other programs by name (``used``), and over how long (``seconds``)."""

    def __init__(self) -> None:
        self._last, self._at = processes(), time.monotonic()
        self.used: dict[str, float] = {}
        self.seconds = 0.0

    def add(self) -> None:
        """Count what was used since the last call."""
        now, at = processes(), time.monotonic()
        others = others_cpu(self._last, now, os.getpid(), os.sched_getaffinity(0))
        for name, cpu_s in others.items():
            self.used[name] = self.used.get(name, 0.0) + cpu_s
        self.seconds += at - self._at
        self._last, self._at = now, at


def named(used: Mapping[str, float], length_s: float, foreign_cores: float) -> str:
    """The programs that used most, with the cores that each used: ``cc1plus (0.9), make (0.2)``.

    ``foreign_cores``: what all others used together; where most of it has no name here, that is
    said.
    """
    cores = {name: cpu_s / length_s for name, cpu_s in used.items()} if length_s else {}
    most = sorted(cores, key=lambda name: -cores[name])[:MOST_NAMES]
    shown = [name for name in most if cores[name] >= LEAST_SHARE]
    words = ", ".join(f"{name} ({cores[name]:.1f})" for name in shown)
    if foreign_cores - sum(cores.values()) > max(0.5 * foreign_cores, LEAST_SHARE):
        unseen = "programs that ended meanwhile or are not visible from here"
        return f"{words}, and {unseen}" if words else unseen
    return words or "many small programs"
