"""An epoch as spans: who worked on which batch from when to when, and what that adds up to.

A span is (phase, lane, batch, begin, end); a lane is a stream, a thread of the host or a rank.
Times are seconds of CLOCK_MONOTONIC, which processes of one machine share.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

HOST = "host"
STREAM = "stream"


class Span(NamedTuple):
    """One phase of one batch on one lane; ``batch`` is -1 where a span serves several."""

    phase: str
    lane: str
    batch: int
    begin: float
    end: float


@dataclass(frozen=True)
class Sweep:
    """What the spans of an epoch add up to, in seconds.

    ``busy``     by phase: while at least one span of it was open
    ``alone``    by phase: while no other phase was beside it
    ``overlap``  while two or more phases were open
    ``idle``     while none was

    ``wall`` is ``idle`` + the sum of ``alone`` + ``overlap``, whatever the schedule.
    """

    wall: float
    busy: dict[str, float]
    alone: dict[str, float]
    overlap: float
    idle: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def sweep(spans: Iterable[Span], begin: float, end: float) -> Sweep:
    """Add up the spans within [begin, end]; what lies outside is cut off."""
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
        """Wait for what was enqueued before; the time at which the epoch begins."""

    def mark(self) -> Any:
        """Note the present on the lane; waits for nothing."""

    def settle(self) -> None:
        """Wait for everything enqueued so far."""

    def stop(self) -> float:
        """Wait for everything enqueued; the time at which the epoch ends."""

    def read(self, marks: Sequence[Any]) -> list[float]:
        """Times of marks, after ``stop``."""
        ...

    def passed(self, mark: Any) -> bool:
        """Whether the work before a mark is done; waits for nothing, on any thread."""
        ...


class HostClock:
    """The host's clock, for work that is done when its call returns."""

    lane = HOST

    def start(self) -> float:
        """The time now."""
        return time.perf_counter()

    mark = stop = start

    def settle(self) -> None:
        """Nothing is ever enqueued."""

    def read(self, marks: Sequence[float]) -> list[float]:
        """The marks are times."""
        return list(marks)

    def passed(self, mark: float) -> bool:
        """The work was done when the mark was set."""
        return True


class CudaClock:
    """Events on the current stream of a device.

    A mark is an event behind the work enqueued so far. Events of one stream are passed in order,
    so that a span holds the device's work between two marks and the time that the stream waited
    for the host inside it; host time hidden behind device work is not counted. Device times are
    laid between an event at each end of the epoch, at which the host's clock is read.
    """

    lane = STREAM

    def __init__(self, device: Any) -> None:
        import torch

        self._cuda, self._device = torch.cuda, torch.device(device)
        if self._device.index is None:  # the work may make another device the current one
            self._device = torch.device("cuda", torch.cuda.current_device())

    def start(self) -> float:
        """Wait for the device; the time now."""
        self.settle()
        self._first, self._begin = self.mark(), time.perf_counter()
        return self._begin

    def mark(self) -> Any:
        """An event behind what is enqueued on the current stream."""
        event = self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self._device))
        return event

    def settle(self) -> None:
        """Wait for the device."""
        self._cuda.synchronize(self._device)

    def stop(self) -> float:
        """Wait for the device; the time now."""
        self._last = self.mark()
        self.settle()
        self._end = time.perf_counter()
        return self._end

    def read(self, marks: Sequence[Any]) -> list[float]:
        """Times of events on the host's clock; what is a time already stays one."""
        length = self._first.elapsed_time(self._last) / 1e3
        wall = self._end - self._begin
        scale = 1.0 if length <= wall or not length else wall / length
        return [
            m if isinstance(m, float) else self._begin + scale * self._first.elapsed_time(m) / 1e3
            for m in marks
        ]

    def passed(self, mark: Any) -> bool:
        """Whether the device is beyond an event; of a device that has failed it never is."""
        try:
            return isinstance(mark, float) or bool(mark.query())
        except RuntimeError:
            return False


class _Open:
    """A span that is being measured; entered once."""

    __slots__ = ("_begin", "_key", "_timeline")

    def __init__(self, timeline: Timeline, key: tuple[str, str, int]) -> None:
        self._timeline, self._key = timeline, key

    def __enter__(self) -> None:
        self._begin = self._timeline.clock.mark()

    def __exit__(self, *_: object) -> None:
        timeline = self._timeline
        timeline.marks.append((self._key, self._begin, timeline.clock.mark()))


class Timeline:
    """Collects the spans of one epoch; the harness starts and stops it, schedules open spans."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.marks: list[tuple[tuple[str, str, int], Any, Any]] = []

    @classmethod
    def on(cls, device: str) -> Timeline:
        """With the clock that tells the truth on a device.

        Events are torch's: where no torch is loaded, or none that knows a GPU, nothing is timed by
        them.
        """
        torch = sys.modules.get("torch")
        events = device.startswith("cuda") and torch is not None and torch.cuda.is_available()
        return cls(CudaClock(device) if events else HostClock())

    def start(self) -> None:
        """Begin the epoch."""
        self.marks = []
        self.begin = self.clock.start()

    def span(self, phase: str, batch: int = -1, lane: str = "") -> _Open:
        """A context in which ``phase`` of ``batch`` runs; ``lane`` is the clock's if empty."""
        return _Open(self, (phase, lane or self.clock.lane, batch))

    def add(self, spans: Iterable[Span]) -> None:
        """Take in spans that another process has timed."""
        for phase, lane, batch, begin, end in spans:
            self.marks.append(((phase, lane, batch), begin, end))

    def passed(self, known: int) -> int:
        """How many spans are over, on the device too, of which ``known`` were before.

        Waits for nothing, on any thread. Spans of several streams may be over in another order:
        then it is about as many.
        """
        marks, clock = self.marks, self.clock
        return bisect_left(
            range(len(marks)), True, known, key=lambda n: not clock.passed(marks[n][2])
        )

    def settle(self) -> None:
        """Wait for what is enqueued, so that it is no part of the next span."""
        self.clock.settle()

    def stop(self) -> None:
        """End the epoch with everything enqueued done."""
        self.end = self.clock.stop()

    @property
    def wall_s(self) -> float:
        """Length of the epoch, measured around it."""
        return self.end - self.begin

    def spans(self) -> list[Span]:
        """The spans in the order in which they ended."""
        begins = self.clock.read([begin for _, begin, _ in self.marks])
        ends = self.clock.read([end for _, _, end in self.marks])
        return [Span(*m[0], b, e) for m, b, e in zip(self.marks, begins, ends, strict=True)]

    def sweep(self) -> Sweep:
        """What the spans add up to."""
        return sweep(self.spans(), self.begin, self.end)
