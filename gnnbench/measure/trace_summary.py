"""The calls and kernels of a trace that took longest, as text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MOST = 12  # lines of each table
NAME = 60  # letters of a name
OTHER = "outside"  # of all phases
Key = tuple[str, str]
Times = dict[Key, float]  # microseconds


class Event(NamedTuple):
    """A complete event of a trace: times in microseconds."""

    kind: str
    name: str
    thread: object
    start: float
    end: float


def summarize(trace: Iterable[Mapping[str, object]]) -> str:
    """Return the calls by the time spent in themselves, and the kernels by their time.

    ``trace`` are the events of a Chrome trace as torch's profiler writes it. A call belongs to the
    phase that is open on its thread; calls of other threads, as those of autograd, to the phase
    that was opened last.
    """
    events = [_event(e) for e in trace if e.get("ph") == "X" and "dur" in e]
    ranges = [e for e in events if e.kind == "user_annotation" and not e.name.startswith("Prof")]
    calls = [e for e in events if e.kind == "cpu_op"]
    device = [e for e in events if e.kind in ("kernel", "gpu_memcpy", "gpu_memset")]
    tables = [_table("calls, by the time spent in themselves", *_own_times(calls, ranges))]
    if device:
        times: Times = defaultdict(float)
        counts: Counter[Key] = Counter()
        for event in device:
            times["GPU", event.name] += event.end - event.start
            counts["GPU", event.name] += 1
        tables.append(_table("kernels and copies", times, counts))
    return "\n\n".join(tables) + "\n"


def _event(event: Mapping[str, object]) -> Event:
    start, length = float(str(event["ts"])), float(str(event["dur"]))
    return Event(
        str(event.get("cat", "")), str(event["name"]), event.get("tid"), start, start + length
    )


def _own_times(calls: Sequence[Event], ranges: Sequence[Event]) -> tuple[Times, Counter[Key]]:
    """Return microseconds without inner calls, and numbers of calls, by phase and name."""
    times: Times = defaultdict(float)
    counts: Counter[Key] = Counter()
    by_thread: dict[object, list[Event]] = {}
    for call in calls:
        by_thread.setdefault(call.thread, []).append(call)
    for thread, own in by_thread.items():
        open_calls: list[tuple[Event, Key]] = []
        for call in sorted(own, key=lambda e: (e.start, -e.end)):
            while open_calls and open_calls[-1][0].end <= call.start:
                open_calls.pop()
            key = _phase(call, thread, ranges), call.name
            times[key] += call.end - call.start
            counts[key] += 1
            if open_calls:
                times[open_calls[-1][1]] -= call.end - call.start
            open_calls.append((call, key))
    return times, counts


def _phase(call: Event, thread: object, ranges: Sequence[Event]) -> str:
    """Return the phase of a call: ``compute`` of the range ``compute 3``."""
    around = [r for r in ranges if r.start <= call.start < r.end]
    around = [r for r in around if r.thread == thread] or around
    if not around:
        return OTHER
    return max(around, key=lambda r: r.start).name.split(" ")[0]


def _table(title: str, times: Times, counts: Counter[Key]) -> str:
    total = sum(times.values()) or 1.0
    lines = [f"{title}:", f"{'ms':>9} {'share':>6} {'number':>7}  phase      name"]
    longest = sorted(times.items(), key=lambda item: -item[1])
    for (phase, name), time in longest[:MOST]:
        lines.append(
            f"{time / 1e3:9.3f} {time / total:6.1%} {counts[phase, name]:7}  {phase:<10}"
            f" {name[:NAME]}"
        )
    rest = sum(time for _, time in longest[MOST:])
    if rest:
        lines.append(f"{rest / 1e3:9.3f} {rest / total:6.1%} {'':7}  {'':<10} all others")
    return "\n".join(lines)
