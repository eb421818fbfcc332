"""What workers leave behind, and on which cores and how willingly their threads run.

The harness is the reaper of all its descendants: what outlives its parent becomes a child of the
harness, whatever session it moved to, and is found and ended there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

MARK = "GNNBENCH_WORKER"
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
REAPED_S = 1.0  # in which the threads of a process that was killed have ended, too
REST_SHARE = 0.1  # of a core
REST_TICKS_S = 0.05  # of a clock of 10 ms: less cannot be told from rounding
NICE, POLICY = 16, 38  # fields of /proc/PID/stat behind the name
# Whether Linux lists the children of a thread (proc(5)); else every process is looked at.
LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()
# Who asks an OpenMP runtime to bind its threads has bound threads.
BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def adopt(on: bool = True) -> None:
    """Become the parent of every descendant whose own parent ends, or no longer."""
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, int(on), 0, 0, 0)


def children(pid: int) -> list[psutil.Process]:
    """Processes whose parent is ``pid``, also those that have ended and are not reaped.

    Raises ``psutil.Error`` where it has ended itself.
    """
    if not LISTED:
        return list(psutil.Process(pid).children())
    pids: list[str] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the thread has ended
                pids += (task / "children").read_text().split()
    except OSError:
        raise psutil.NoSuchProcess(pid) from None
    found = []
    for child in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(int(child)))
    return found


def family(pid: int) -> list[psutil.Process]:
    """A process and all below it. Raises ``psutil.Error`` where it has ended."""
    found = [psutil.Process(pid)]
    for one in found:
        with contextlib.suppress(psutil.Error):
            found += children(one.pid)
    return found


def family_cpu_s(pid: int) -> float:
    """CPU time so far of a process and all below it (10 ms steps); 0 where it has ended."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        for process in family(pid):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def strays(workers: Collection[int], since: float) -> list[psutil.Process]:
    """Processes that were left to this one: its children in a session that is not its own.

    ``workers`` are the pids of those that it started itself, ``since`` the time of the epoch (s)
    at which the first of them was. Those that have already ended are reaped on the way.
    """
    own, found = os.getsid(0), []
    for child in children(os.getpid()):
        if child.pid in workers:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(child.pid) == own or child.create_time() < since - 1.0:
                continue
            if child.status() != psutil.STATUS_ZOMBIE or not _reaped(child.pid):
                found.append(child)
    return found


def _reaped(pid: int) -> bool:
    """Reap a child that has ended; False where only its first thread has, and others run on."""
    end = time.monotonic() + REAPED_S
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def mark(process: psutil.Process) -> str:
    """Which worker started a process, or its ancestor: ``MARK`` of its environment, or ""."""
    try:
        found: str = process.environ().get(MARK, "")
    except (psutil.Error, OSError):
        return ""
    return found


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill processes that were left to this one, and all below them."""
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            for one in reversed(family(process.pid)):
                one.kill()
            os.waitpid(process.pid, 0)


def strays_fault(left: Collection[psutil.Process]) -> str:
    """What is wrong where a worker has left processes to the harness."""
    names = set()
    for process in left:
        with contextlib.suppress(psutil.Error):
            names.add(process.name())
    if not left:
        return ""
    return (
        f"{len(left)} of its processes ({', '.join(sorted(names))}) outlived their parent and ran"
        " on beside the worker: work may be done there"
    )


@dataclass(frozen=True)
class Running:
    """On which cores a thread may run, its nice value and its scheduling policy."""

    cores: frozenset[int]
    nice: int
    policy: int

    @classmethod
    def own(cls) -> Running:
        """Of the calling process."""
        return cls.of(os.getpid(), os.getpid())

    @classmethod
    def of(cls, pid: int, thread: int) -> Running:
        """Of a thread; raises ``OSError`` where it has ended."""
        stat = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
        return cls(
            frozenset(os.sched_getaffinity(thread)), int(stat[NICE]), int(stat[POLICY])
        )  # fmt: skip


def running(pid: int) -> set[Running]:
    """How the threads of a process and of all below it run, each way once."""
    found = set()
    with contextlib.suppress(psutil.Error):
        for process in family(pid):
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        found.add(Running.of(process.pid, int(task.name)))
    return found


def running_doubt(threads: Collection[Running], own: Running) -> str:
    """Whether threads of a worker run otherwise than the harness that started them, ``own``."""
    if any(t.nice != own.nice or t.policy != own.policy for t in threads):
        return "the priority of a thread was changed"
    if any(name in os.environ for name in BINDING):
        return ""
    if any(t.cores != own.cores for t in threads):
        return "the cores that a thread may run on were changed"
    return ""


def workers_doubt(pids: Sequence[int], own: Running) -> str:
    """Whether anything has changed how threads run: of the workers, or of this process, which ran
    as ``own`` at first."""
    threads = {thread for pid in pids for thread in running(pid)}
    return running_doubt(threads | {Running.own()}, own)


def changes_doubt(samples: Sequence[Mapping[str, Any]]) -> str:
    """What was found of cores and priorities around the measured epochs."""
    found = [s["isolation"] for s in samples if s.get("isolation")]
    return f"{found[-1]}, around {len(found)} of {len(samples)} epochs" if found else ""


def rest_doubt(samples: Sequence[Mapping[str, Any]]) -> str:
    """Whether a worker works between its commands, when it has nothing to do."""
    spent = sum(s.get("rest_cpu_s", 0.0) for s in samples)
    length = sum(s.get("rest_s", 0.0) for s in samples)
    if spent <= REST_TICKS_S or spent <= REST_SHARE * length:
        return ""
    return f"its worker used {spent / length:.0%} of a core between its commands"


class Rest:
    """CPU time that a worker uses between its commands."""

    def __init__(self) -> None:
        self.cpu_s = self.length_s = 0.0
        self._since: tuple[float, float] | None = None

    def begin(self, cpu_s: float) -> None:
        """A command has been answered; ``cpu_s`` is the worker's CPU time so far."""
        self._since = cpu_s, time.monotonic()

    def end(self, cpu_s: float) -> None:
        """The next command is about to be given."""
        if self._since is not None:
            self.cpu_s += max(cpu_s - self._since[0], 0.0)
            self.length_s += time.monotonic() - self._since[1]
            self._since = None

    def taken(self) -> dict[str, float]:
        """``rest_cpu_s`` and ``rest_s`` since the last call."""
        found = {"rest_cpu_s": self.cpu_s, "rest_s": self.length_s}
        self.cpu_s = self.length_s = 0.0
        return found
