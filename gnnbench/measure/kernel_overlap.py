"""How much of a producer's gathers runs next to kernels of a consumer, from a trace of each."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Trace = Mapping[str, object]


class Kernel(NamedTuple):
    """A kernel of a GPU; ``begin`` and ``end`` in nanoseconds since the epoch of Unix."""

    name: str
    begin: int
    end: int


def kernels_in(trace: Trace) -> list[Kernel]:
    """Return the kernels of a trace, without copies.

    ``trace`` is a Chrome trace as torch's profiler writes it. Its times count from
    ``baseTimeNanoseconds``, a reading of the system's clock, which all processes share. Raises
    ``ValueError`` for a trace without it.
    """
    base, events = trace.get("baseTimeNanoseconds"), trace.get("traceEvents")
    if not isinstance(base, int) or not isinstance(events, list):
        raise ValueError("not a trace of torch's profiler with a base time")
    kernels = []
    for event in events:
        if event.get("cat") == "kernel":
            begin = base + round(1e3 * event["ts"])
            kernels.append(Kernel(event["name"], begin, begin + round(1e3 * event["dur"])))
    return kernels


def busy_s(kernels: Sequence[Kernel]) -> float:
    """Return how long at least one of the kernels runs (s)."""
    return sum(end - begin for begin, end in _merged(kernels)) / 1e9


def gather_shares(producer: Sequence[Kernel], consumer: Sequence[Kernel]) -> list[float]:
    """Return for each gather of the producer the share of its time with kernels of the consumer.

    Its gathers are the launches of the kernel with the most time. Empty without kernels.
    """
    times: Counter[str] = Counter()
    for kernel in producer:
        times[kernel.name] += kernel.end - kernel.begin
    if not times:
        return []
    name = times.most_common(1)[0][0]
    busy = _merged(consumer)
    return [
        _common(kernel, busy) / (kernel.end - kernel.begin)
        for kernel in producer
        if kernel.name == name and kernel.end > kernel.begin
    ]


def _merged(kernels: Sequence[Kernel]) -> list[tuple[int, int]]:
    """Return the intervals with at least one kernel, in order."""
    merged: list[tuple[int, int]] = []
    for _, begin, end in sorted(kernels, key=lambda k: k.begin):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _common(kernel: Kernel, busy: Sequence[tuple[int, int]]) -> int:
    """Return how much of a kernel's time lies in disjoint, ordered intervals (ns)."""
    common = 0
    for begin, end in busy[max(bisect_right(busy, (kernel.begin, kernel.begin)) - 1, 0) :]:
        if begin >= kernel.end:
            break
        common += max(min(end, kernel.end) - max(begin, kernel.begin), 0)
    return common
