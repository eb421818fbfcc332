"""Limits of control groups, read from fake trees: v1, v2, nested, hybrid, containers."""

from pathlib import Path

import pytest

from gnnbench.core import cgroups
from gnnbench.core.cgroups import cpu_limit, memory_limit, usable_cores

GIB = 1 << 30


def tree(folder: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    (folder / "fs").mkdir(exist_ok=True)
    (folder / "self").write_text(membership + "\n")
    return folder / "fs", folder / "self"


CASES = {
    "v2": ("0::/a/b", {"a/b/cpu.max": "150000 100000", "a/b/memory.max": str(GIB)}, 1.5, GIB),
    "v2, a group above": (
        "0::/a/b",
        {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000", "a/memory.high": str(GIB),
         "a/b/memory.max": str(2 * GIB)},
        0.5, GIB,
    ),
    "v2, no limit": ("0::/a", {"a/cpu.max": "max 100000", "a/memory.max": "max"}, None, None),
    "v2 in a container": ("0::/", {"cpu.max": "300000 100000", "memory.max": "77"}, 3.0, 77),
    "v2, a path of the host": ("0::/docker/1", {"cpu.max": "200000 100000"}, 2.0, None),
    "v1": (
        "4:memory:/g\n3:cpu,cpuacct:/g\n1:name=systemd:/x",
        {"cpu,cpuacct/g/cpu.cfs_quota_us": "100000", "cpu,cpuacct/g/cpu.cfs_period_us": "50000",
         "memory/g/memory.limit_in_bytes": str(GIB)},
        2.0, GIB,
    ),
    "v1 by its link": (
        "3:cpu,cpuacct:/g/h\n4:memory:/g/h",
        {"cpu/g/cpu.cfs_quota_us": "100000", "cpu/g/cpu.cfs_period_us": "100000",
         "cpu/g/h/cpu.cfs_quota_us": "-1", "cpu/g/h/cpu.cfs_period_us": "100000",
         "memory/memory.limit_in_bytes": "9223372036854771712",
         "memory/g/memory.limit_in_bytes": str(GIB)},
        1.0, GIB,
    ),
    "hybrid": (
        "4:memory:/g\n0::/g",
        {"unified/g/cpu.max": "100000 100000", "memory/g/memory.limit_in_bytes": str(GIB)},
        1.0, GIB,
    ),
    "nothing": ("", {}, None, None),
    "damaged": ("0::/a", {"a/cpu.max": "x", "a/memory.max": ""}, None, None),
}  # fmt: skip


@pytest.mark.parametrize(("membership", "files", "cores", "memory"), CASES.values(), ids=CASES)
def test_cpu_and_memory_limits(tmp_path: Path, membership, files, cores, memory) -> None:
    paths = tree(tmp_path, membership, files)
    assert cpu_limit(*paths) == cores
    assert memory_limit(*paths) == memory


def test_cpu_limit_without_a_membership_file(tmp_path: Path) -> None:
    root, _ = tree(tmp_path, "", {"cpu.max": "100000 100000"})
    assert cpu_limit(root, tmp_path / "none") == 1.0


@pytest.mark.parametrize(("quota", "cores"), [(None, 4), (8.0, 4), (2.5, 2), (0.4, 1), (4.0, 4)])
def test_usable_cores_are_limited_by_the_quota(monkeypatch, quota, cores) -> None:
    monkeypatch.setattr(cgroups, "cpu_limit", lambda: quota)
    monkeypatch.setattr(cgroups.os, "sched_getaffinity", lambda pid: set(range(4)))
    assert usable_cores() == cores
