"""Where the threads of workers run and who may stop them, and CPU use while idle."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import psutil

from gnnbench.harness.stray_processes import process_tree

if TYPE_CHECKING:
    from gnnbench.schema.samples import EpochSample

IDLE_SHARE = 0.1  # of a core
IDLE_TICKS_S = 0.05  # of a clock of 10 ms: less cannot be distinguished from rounding
NICE, POLICY = 16, 38  # fields of /proc/PID/stat behind the name
GROUPS = {"", "cpu", "cpuset", "freezer"}  # controllers; "" has all of version 2
# A user who asks an OpenMP runtime to bind its threads has bound threads.
BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


@dataclass(frozen=True)
class Placement:
    """On which cores a thread may run, its nice value and its scheduling policy.

    ``groups`` are control groups and ``tracer`` the pid of its debugger (0: none): either can
    stop it without a signal to its parent.
    """

    cores: frozenset[int]
    nice: int
    policy: int
    groups: str = ""
    tracer: int = 0

    @classmethod
    def of_this_process(cls) -> Placement:
        """Return the placement of the main thread of the calling process."""
        return cls.of(os.getpid(), os.getpid(), control_groups(os.getpid()))

    @classmethod
    def of(cls, pid: int, thread: int, groups: str) -> Placement:
        """Return the placement of a thread of a process in these control groups.

        Raises ``OSError`` if it has ended.
        """
        task = Path(f"/proc/{pid}/task/{thread}")
        stat = (task / "stat").read_text().rpartition(")")[2].split()
        tracer = (task / "status").read_text().partition("TracerPid:")[2].split()[0]
        cores = frozenset(os.sched_getaffinity(thread))
        return cls(cores, int(stat[NICE]), int(stat[POLICY]), groups, int(tracer))


def control_groups(pid: int) -> str:
    """Return the control groups that decide when a process runs; "" if it has ended or has none.

    Lines of cgroups(7): HIERARCHY:CONTROLLERS:PATH, without controllers for version 2.
    """
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return " ".join(line for line in lines if GROUPS & {*line.split(":")[1].split(",")})


def placements(pid: int) -> set[Placement]:
    """Return the distinct placements of all threads of a process and its descendants."""
    distinct = set()
    with contextlib.suppress(psutil.Error):
        for process in process_tree(pid):
            groups = control_groups(process.pid)
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        distinct.add(Placement.of(process.pid, int(task.name), groups))
    return distinct


def placement_doubt(threads: Collection[Placement], expected: Placement) -> str:
    """Return how threads are placed differently from the harness that started them, or ""."""
    if any(t.nice != expected.nice or t.policy != expected.policy for t in threads):
        return "the priority of a thread was changed"
    if any(t.tracer != expected.tracer for t in threads):
        return "a thread is traced by a debugger"
    if any(t.groups != expected.groups for t in threads):
        return "a thread was moved to another control group"
    if any(name in os.environ for name in BINDING):
        return ""
    if any(t.cores != expected.cores for t in threads):
        return "the cores that a thread may run on were changed"
    return ""


def workers_doubt(pids: Sequence[int], expected: Placement) -> str:
    """Return what changed the placement of threads of the workers or of this process, or ""."""
    threads = {thread for pid in pids for thread in placements(pid)}
    return placement_doubt(threads | {Placement.of_this_process()}, expected)


def changes_doubt(samples: Sequence[EpochSample]) -> str:
    """Return the changes of cores and priorities that measured epochs noted, or ""."""
    changes = [s.isolation for s in samples if s.isolation]
    return f"{changes[-1]}, around {len(changes)} of {len(samples)} epochs" if changes else ""


def idle_cpu_doubt(samples: Sequence[EpochSample]) -> str:
    """Return how much CPU a worker used between its commands, where it is too much, or ""."""
    spent = sum(s.rest_cpu_s or 0.0 for s in samples)
    length = sum(s.rest_s or 0.0 for s in samples)
    if spent <= IDLE_TICKS_S or spent <= IDLE_SHARE * length:
        return ""
    return f"its worker used {spent / length:.0%} of a core between its commands"


class IdleCpu(TypedDict):
    """CPU time between commands, and the duration of these pauses (s)."""

    rest_cpu_s: float
    rest_s: float


class IdleCpuMeter:
    """Sums the CPU time that a worker uses between its commands."""

    def __init__(self) -> None:
        self.cpu_s = self.length_s = 0.0
        self._since: tuple[float, float] | None = None

    def begin(self, cpu_s: float) -> None:
        """Start a pause after an answer; ``cpu_s`` is the worker's CPU time so far."""
        self._since = cpu_s, time.monotonic()

    def end(self, cpu_s: float) -> None:
        """End the pause before the next command."""
        if self._since is not None:
            self.cpu_s += max(cpu_s - self._since[0], 0.0)
            self.length_s += time.monotonic() - self._since[1]
            self._since = None

    def take(self) -> IdleCpu:
        """Return the sums since the last call."""
        sums = IdleCpu(rest_cpu_s=self.cpu_s, rest_s=self.length_s)
        self.cpu_s = self.length_s = 0.0
        return sums
