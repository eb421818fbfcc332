"""The caches of the cores that this process may use, as the kernel tells of them."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cpu_caches(
    root: Path = Path("/sys/devices/system/cpu"), cores: Collection[int] | None = None
) -> dict[int, int]:
    """Bytes by level, of all caches for data that ``cores`` have (this process's if None).

    A cache that several of them share counts once. Empty where the system reports none.
    """
    by_level: dict[int, dict[str, int]] = {}
    for core in os.sched_getaffinity(0) if cores is None else cores:
        for index in sorted((root / f"cpu{core}" / "cache").glob("index*")):
            with suppress(OSError, ValueError, KeyError):
                kind, level, size, shared = (
                    (index / file).read_text().strip()
                    for file in ("type", "level", "size", "shared_cpu_list")
                )
                if kind != "Instruction":
                    by_level.setdefault(int(level), {})[shared] = _bytes(size)
    return {level: sum(sizes.values()) for level, sizes in sorted(by_level.items())}


def _bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1]] if size[-1] in UNITS else int(size)
