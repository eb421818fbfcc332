"""Hardware counters of a CPU for one function call, over all threads of this process (Linux).

``perf_event_open(2)`` counts what a thread does by itself, without privileges where
``kernel.perf_event_paranoid`` is 2 or less. Virtual machines often have no counters.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

CALL = {"x86_64": 298, "aarch64": 241}  # number of the system call
SIZE = 112  # bytes of perf_event_attr, its fifth version
HARDWARE_CACHE, SOFTWARE = 3, 1
L1, LAST = 0, 2  # caches: first for data, last
ACCESSES, MISSES = 0, 1
DISABLED, NO_KERNEL, NO_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
TIMES = 1 | 2  # a count comes with the time it was enabled and the time it was running
ENABLE, DISABLE, RESET = 0x2400, 0x2401, 0x2403
LINE = 64

Event = tuple[int, int]


def _reads(cache: int, result: int) -> Event:
    return HARDWARE_CACHE, cache | 0 << 8 | result << 16


EVENTS: dict[str, Event] = {
    "l1_reads": _reads(L1, ACCESSES),
    "l1_misses": _reads(L1, MISSES),
    "last_reads": _reads(LAST, ACCESSES),
    "last_misses": _reads(LAST, MISSES),
}


class CpuRates(TypedDict):
    """Hit rates of the first two caches, and bytes read from memory; None where unknown."""

    l1_hit: float | None
    l2_hit: float | None
    memory_bytes: float | None


class NoCounters(Exception):
    """Counters cannot be read here; the message says why."""


def counted(run: Callable[[], object], events: Mapping[str, Event] = EVENTS) -> dict[str, float]:
    """Count ``events`` of all threads while ``run`` runs; returns counts by event name.

    Where the processor multiplexed a counter, its count is scaled to the whole time. Raises
    ``NoCounters`` where an event is not available.
    """
    threads = [int(path.name) for path in Path("/proc/self/task").iterdir()]
    opened: list[tuple[str, int]] = []
    try:
        for name, event in events.items():
            for thread in threads:
                opened.append((name, _open(event, thread)))
        for request in (RESET, ENABLE):
            for _, descriptor in opened:
                fcntl.ioctl(descriptor, request, 0)
        run()
        for _, descriptor in opened:
            fcntl.ioctl(descriptor, DISABLE, 0)
        counts = dict.fromkeys(events, 0.0)
        for name, descriptor in opened:
            counts[name] += _scaled(*struct.unpack("QQQ", os.read(descriptor, 24)))
        return counts
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def rates(counts: Mapping[str, float]) -> CpuRates:
    """Hit rates and bytes read from memory, from the counts of ``EVENTS``.

    The second cache has no event: its hits are the misses of the first that do not reach the last
    (the third). None where counts contradict one another: on some processors prefetches count as
    reads of the last cache.
    """
    l1, misses = counts["l1_reads"], counts["l1_misses"]
    last, memory = counts["last_reads"], counts["last_misses"]
    return {
        "l1_hit": _share(l1 - misses, l1),
        "l2_hit": _share(misses - last, misses),
        "memory_bytes": memory * LINE,
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 and 0 <= part <= whole else None


def _scaled(count: int, enabled: int, running: int) -> float:
    return count * enabled / running if running else 0.0


def _open(event: Event, thread: int) -> int:
    number = CALL.get(platform.machine())
    if number is None:
        raise NoCounters(f"hardware counters are not supported on {platform.machine()}")
    kind, config = event
    flags = DISABLED | NO_KERNEL | NO_HYPERVISOR
    attributes = struct.pack("IIQQQQQ", kind, SIZE, config, 0, 0, TIMES, flags).ljust(SIZE, b"\0")
    call = ctypes.CDLL(None, use_errno=True).syscall
    descriptor: int = call(number, attributes, thread, -1, -1, 0)
    if descriptor < 0:
        reason = os.strerror(ctypes.get_errno()).lower()
        raise NoCounters(f"the kernel gives no counter of the processor's caches ({reason})")
    return descriptor
