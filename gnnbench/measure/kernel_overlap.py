"""How long kernels of two processes run on a GPU at once, from a trace of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gnnbench.measure.timeline import Span, sweep

FIRST, SECOND = "first", "second"
Trace = Mapping[str, object]
Times = list[tuple[float, float]]


@dataclass(frozen=True)
class KernelOverlap:
    """Time with a kernel of the first process, of the second, and of both (s)."""

    first_s: float
    second_s: float
    both_s: float


def kernel_times(trace: Trace) -> Times:
    """Return begin and end of each kernel of a trace (s since the epoch of Unix), without copies.

    ``trace`` is a Chrome trace as torch's profiler writes it. Its times count from
    ``baseTimeNanoseconds``, a reading of the system's clock, which all processes share.
    """
    base = float(str(trace.get("baseTimeNanoseconds", 0))) / 1e9
    events = trace["traceEvents"]
    assert isinstance(events, Iterable)
    times: Times = []
    for event in events:
        if event.get("cat") == "kernel":
            begin = base + float(event["ts"]) / 1e6
            times.append((begin, begin + float(event["dur"]) / 1e6))
    return times


def kernel_overlap(first: Times, second: Times) -> KernelOverlap:
    """Return how long kernels of two processes run, and how long at once.

    Only the time counts in which both processes are at work: from the later of their first kernels
    to the earlier of their last.
    """
    if not first or not second:
        return KernelOverlap(0.0, 0.0, 0.0)
    begin = max(min(b for b, _ in times) for times in (first, second))
    end = min(max(e for _, e in times) for times in (first, second))
    if end <= begin:
        return KernelOverlap(0.0, 0.0, 0.0)
    spans = [Span(name, "", 0, *t) for name, own in ((FIRST, first), (SECOND, second)) for t in own]
    swept = sweep(spans, begin, end)
    times = {name: swept.alone.get(name, 0.0) + swept.overlap for name in (FIRST, SECOND)}
    return KernelOverlap(times[FIRST], times[SECOND], swept.overlap)
