"""Processes that workers start: the whole tree below a worker, and those left behind.

The harness is the subreaper of all its descendants: a process that outlives its parent becomes a
child of the harness, whatever its session, so that the harness can detect and kill it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import psutil

from gnnbench.harness.worker_environment import MARK

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
CPUCLOCK_SCHED = 2  # of a clock id, CPU time of a process: see clock_getcpuclockid(3)
REAPED_S = 1.0  # in which the threads of a process that was killed have ended, too
# Whether Linux lists the children of a thread (proc(5)); else every process is looked at.
LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def adopt_orphans(on: bool = True) -> None:
    """Become the parent of every descendant whose own parent ends, or stop doing so."""
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, int(on), 0, 0, 0)


def children(pid: int) -> list[psutil.Process]:
    """Return the child processes of ``pid``, also those that have ended and are not reaped.

    Raises ``psutil.Error`` if ``pid`` itself has ended.
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
    processes = []
    for child in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(int(child)))
    return processes


def process_tree(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants. Raises ``psutil.Error`` if it has ended."""
    tree = [psutil.Process(pid)]
    for process in tree:
        with contextlib.suppress(psutil.Error):
            tree += children(process.pid)
    return tree


def tree_cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its descendants; 0 if it has ended."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        for process in process_tree(pid):
            with contextlib.suppress(OSError):  # it has ended
                total += time.clock_gettime((~process.pid << 3) | CPUCLOCK_SCHED)
    return total


def find_strays(workers: Collection[int], since: float) -> list[psutil.Process]:
    """Return orphans that this process adopted: its children in another session than its own.

    ``workers`` are the pids of the workers it started itself; the first was started at ``since``
    (s since the epoch). Orphans that have already ended are reaped.
    """
    session = os.getsid(0)
    strays = []
    for child in children(os.getpid()):
        if child.pid in workers:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(child.pid) == session or child.create_time() < since - 1.0:
                continue
            if child.status() != psutil.STATUS_ZOMBIE or not _reap(child.pid):
                strays.append(child)
    return strays


def _reap(pid: int) -> bool:
    """Reap a child that has ended; False if only its first thread has, and others run on."""
    end = time.monotonic() + REAPED_S
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def mark_of(process: psutil.Process) -> str:
    """Return the mark of the worker that a process descends from (``MARK``), or ""."""
    try:
        mark: str = process.environ().get(MARK, "")
    except (psutil.Error, OSError):
        return ""
    return mark


def kill_strays(processes: Iterable[psutil.Process]) -> None:
    """Kill adopted processes and all their descendants."""
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            for descendant in reversed(process_tree(process.pid)):
                descendant.kill()
            os.waitpid(process.pid, 0)


def strays_fault(strays: Collection[psutil.Process]) -> str:
    """Return what is wrong where a worker has left processes to the harness, or ""."""
    names = set()
    for process in strays:
        with contextlib.suppress(psutil.Error):
            names.add(process.name())
    if not strays:
        return ""
    return (
        f"{len(strays)} of its processes ({', '.join(sorted(names))}) outlived their parent and ran"
        " on next to the worker: work may be done there"
    )
