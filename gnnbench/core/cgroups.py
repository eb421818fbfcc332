"""Limits of the control groups (cgroup v1 and v2) that this process is in: CPU time and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
_MEMORY_FILES = ("memory.max", "memory.high", "memory.limit_in_bytes")


def cpu_limit(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """Cores' worth of CPU time that this process may use; None without a quota.

    The least of all groups from its own to the root: ``cpu.max`` (v2), ``cpu.cfs_quota_us`` and
    ``cpu.cfs_period_us`` (v1).
    """
    limits = []
    for folder in _folders("cpu", root, membership):
        with suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            limits.append(int(quota) / int(period))  # "max" is no number: no limit
        with suppress(OSError, ValueError):
            quota = (folder / "cpu.cfs_quota_us").read_text()
            limits.append(int(quota) / int((folder / "cpu.cfs_period_us").read_text()))
    return min((cores for cores in limits if cores > 0), default=None)


def usable_cores() -> int:
    """Cores this process may run on, or fewer where its control groups have a CPU quota.

    A quota of 2.5 cores is 2: a third thread would be throttled.
    """
    cores, quota = len(os.sched_getaffinity(0)), cpu_limit()
    return cores if quota is None else max(1, min(cores, int(quota)))


def memory_limit(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes of memory that this process may use; None without a limit.

    The least of all groups from its own to the root: ``memory.max`` and ``memory.high`` (v2),
    ``memory.limit_in_bytes`` (v1).
    """
    limits = []
    for folder in _folders("memory", root, membership):
        for name in _MEMORY_FILES:
            with suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return min((size for size in limits if size > 0), default=None)


def _folders(controller: str, root: Path, membership: Path) -> Iterator[Path]:
    """Folders of this process's groups for a controller, and of all groups above them.

    A group that is not visible, as in a container, is skipped.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    groups = {"": "/"}  # mount below the root -> path of the group
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            groups[""] = groups["unified"] = path
        elif controller in controllers.split(","):
            groups |= {controllers: path, controller: path}
    for mount, path in groups.items():
        own = root / mount / path.lstrip("/")
        top = root / mount
        for folder in (own, *own.parents):
            if folder.is_dir():
                yield folder
            if folder == top:
                break
