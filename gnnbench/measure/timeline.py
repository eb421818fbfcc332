"""The spans of an epoch: intervals in which a phase of a batch ran, and their sums.

A span is (phase, lane, batch, begin, end); a lane is a stream, a thread of the host or a rank.
Times are seconds of CLOCK_MONOTONIC, which processes of one machine share.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Union

if TYPE_CHECKING:  # worker processes without a GPU need no torch here
    import torch

HOST = "host"
STREAM = "stream"

Mark = Union[float, "torch.cuda.Event"]
"""A time (s), or an event of a GPU that becomes a time when the epoch has ended."""
SpanKey = tuple[str, str, int]  # phase, lane, batch


class Span(NamedTuple):
    """One phase of one batch on one lane; ``batch`` is -1 where a span serves several."""

    phase: str
    lane: str
    batch: int
    begin: float
    end: float


@dataclass(frozen=True)
class Sweep:
    """Sums over the spans of an epoch (s).

    ``busy``     by phase: time with at least one open span of the phase
    ``alone``    by phase: time with open spans of this phase only
    ``overlap``  time with open spans of two or more phases
    ``idle``     time without an open span

    ``wall`` is ``idle`` + the sum of ``alone`` + ``overlap``, whatever the schedule.
    """

    wall: float
    busy: dict[str, float]
    alone: dict[str, float]
    overlap: float
    idle: float


def sweep(spans: Iterable[Span], begin: float, end: float) -> Sweep:
    """Add up the parts of the spans that are within [begin, end]."""
    edges: list[tuple[float, int, str]] = []
    busy: dict[str, float] = {}
    for s in spans:
        first, last = max(s.begin, begin), min(s.end, end)
        busy.setdefault(s.phase, 0.0)
        if last > first:
            edges += [(first, 1, s.phase), (last, -1, s.phase)]
    alone = dict.fromkeys(busy, 0.0)
    overlap = idle = 0.0
    running: Counter[str] = Counter()
    now = begin
    for at, step, phase in sorted(edges):
        length, now = at - now, at
        if not running:
            idle += length
        elif len(running) == 1:
            alone[next(iter(running))] += length
        else:
            overlap += length
        for one in running:
            busy[one] += length
        running[phase] += step
        if not running[phase]:
            del running[phase]
    return Sweep(end - begin, busy, alone, overlap, idle + end - now)


class Clock(Protocol):
    """Reads the time of marks that were set while work was running."""

    lane: str

    def start(self) -> float:
        """Wait for the work enqueued so far; return the time at which the epoch begins."""

    def mark(self) -> Mark:
        """Mark the present position on the lane, without waiting."""
        ...

    def settle(self) -> None:
        """Wait for the work enqueued so far."""

    def stop(self) -> float:
        """Wait for the work enqueued so far; return the time at which the epoch ends."""

    def read(self, marks: Sequence[Mark]) -> list[float]:
        """Return the times of marks, after ``stop``."""
        ...

    def passed(self, mark: Mark) -> bool:
        """Whether the work before a mark is done. Does not wait; may be called on any thread."""
        ...


class HostClock:
    """The host's clock, for work that has ended when its call returns."""

    lane = HOST

    def start(self) -> float:
        """Return the present time."""
        return time.perf_counter()

    mark = stop = start

    def settle(self) -> None:
        """Do nothing: work on the host is not enqueued."""

    def read(self, marks: Sequence[Mark]) -> list[float]:
        """Return the marks, which are times. Raises ``TypeError`` for an event of a GPU."""
        return [_time(mark) for mark in marks]

    def passed(self, mark: Mark) -> bool:
        """Return True: the work had ended when the mark was set."""
        return True


def _time(mark: Mark) -> float:
    if isinstance(mark, (int, float)):
        return mark
    raise TypeError("the host's clock cannot read an event of a GPU")


class CudaClock:
    """Events on the current stream of a device.

    A mark is an event after the work enqueued so far. Events of one stream complete in order.
    A span therefore includes the device's work between two marks and the time that the stream
    waited for the host meanwhile, but no host time that device work hides. Device times are mapped
    to the host's clock, which is read at an event at each end of the epoch.
    """

    lane = STREAM

    def __init__(self, device: str | torch.device) -> None:
        import torch

        self._cuda, self._device = torch.cuda, torch.device(device)
        if self._device.index is None:  # the work may make another device the current one
            self._device = torch.device("cuda", torch.cuda.current_device())

    def start(self) -> float:
        """Wait for the device; return the present time."""
        self.settle()
        self._first, self._begin = self.mark(), time.perf_counter()
        return self._begin

    def mark(self) -> torch.cuda.Event:
        """Record an event after the work enqueued on the current stream."""
        event = self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self._device))
        return event

    def settle(self) -> None:
        """Wait for the device."""
        self._cuda.synchronize(self._device)

    def stop(self) -> float:
        """Wait for the device; return the present time."""
        self._last = self.mark()
        self.settle()
        self._end = time.perf_counter()
        return self._end

    def read(self, marks: Sequence[Mark]) -> list[float]:
        """Return the times of marks on the host's clock; marks that are times stay as they are."""
        length = self._first.elapsed_time(self._last) / 1e3
        wall = self._end - self._begin
        scale = 1.0 if length <= wall or not length else wall / length
        return [
            m if isinstance(m, float) else self._begin + scale * self._first.elapsed_time(m) / 1e3
            for m in marks
        ]

    def passed(self, mark: Mark) -> bool:
        """Whether the device has completed an event; False for a device that has failed."""
        try:
            return isinstance(mark, float) or bool(mark.query())
        except RuntimeError:
            return False


class OpenSpan:
    """Context that measures one span; entered once."""

    __slots__ = ("_begin", "_key", "_timeline")

    def __init__(self, timeline: Timeline, key: SpanKey) -> None:
        self._timeline, self._key = timeline, key

    def __enter__(self) -> None:
        self._begin = self._timeline.clock.mark()

    def __exit__(self, *_: object) -> None:
        timeline = self._timeline
        timeline.marks.append((self._key, self._begin, timeline.clock.mark()))


class Timeline:
    """Collects the spans of one epoch. The harness starts and stops it; schedules add spans.

    ``producer_trace``: the file for a trace of the producer's kernels, "" for none.
    """

    producer_trace = ""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.marks: list[tuple[SpanKey, Mark, Mark]] = []

    @classmethod
    def on(cls, device: str) -> Timeline:
        """Return a timeline with the clock of a device.

        CUDA events require torch with a GPU. Where torch is not loaded or has no GPU, the host's
        clock is used.
        """
        torch = sys.modules.get("torch")
        events = device.startswith("cuda") and torch is not None and torch.cuda.is_available()
        return cls(CudaClock(device) if events else HostClock())

    def start(self) -> None:
        """Begin the epoch."""
        self.marks = []
        self.begin = self.clock.start()

    def span(self, phase: str, batch: int = -1, lane: str = "") -> OpenSpan:
        """Return a context that measures ``phase`` of ``batch``; "" is the clock's own lane."""
        return OpenSpan(self, (phase, lane or self.clock.lane, batch))

    def add(self, spans: Iterable[Span]) -> None:
        """Add spans that another process has timed."""
        for phase, lane, batch, begin, end in spans:
            self.marks.append(((phase, lane, batch), begin, end))

    def passed(self, known: int) -> int:
        """Return how many spans have ended, on the device too; at least ``known`` of them have.

        Does not wait; may be called on any thread. The number is approximate for spans of several
        streams, which may end in another order.
        """
        marks, clock = self.marks, self.clock
        return bisect_left(
            range(len(marks)), True, known, key=lambda n: not clock.passed(marks[n][2])
        )

    def settle(self) -> None:
        """Wait for the work enqueued so far, so that the next span does not include it."""
        self.clock.settle()

    def stop(self) -> None:
        """Wait for the work enqueued so far and end the epoch."""
        self.end = self.clock.stop()

    @property
    def wall_s(self) -> float:
        """Duration of the epoch (s), from ``start`` to ``stop``."""
        return self.end - self.begin

    def spans(self) -> list[Span]:
        """Return the spans in the order in which they ended."""
        begins = self.clock.read([begin for _, begin, _ in self.marks])
        ends = self.clock.read([end for _, _, end in self.marks])
        return [Span(*m[0], b, e) for m, b, e in zip(self.marks, begins, ends, strict=True)]

    def sweep(self) -> Sweep:
        """Return the sums over the spans."""
        return sweep(self.spans(), self.begin, self.end)
