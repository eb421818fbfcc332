"""Clocks of an epoch: the host's, and events on a GPU stream."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch

PHASES = ("sample", "memory_io", "compute")


class Clock(Protocol):
    """Measures one epoch: its wall time and, between marks, its phases. All in seconds."""

    def start(self) -> None:
        """Begin the epoch; everything enqueued before is waited for."""

    def mark(self, phase: str = "") -> None:
        """The span since the last mark (or the start) belongs to ``phase``; to none if empty."""

    def stop(self) -> tuple[float, dict[str, float]]:
        """End the epoch with everything enqueued done: wall time, time by phase."""
        ...


class HostClock:
    """The host's monotonic clock; for work that is done when its call returns."""

    def start(self) -> None:
        """Begin the epoch."""
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._begin = self._last = time.perf_counter()

    def mark(self, phase: str = "") -> None:
        """End a span."""
        now = time.perf_counter()
        if phase:
            self._phases[phase] += now - self._last
        self._last = now

    def stop(self) -> tuple[float, dict[str, float]]:
        """Wall time and time by phase."""
        return time.perf_counter() - self._begin, self._phases


class CudaClock:
    """Events on the current stream between the phases; wall time by the host's clock.

    A mark waits for nothing: it records an event behind the work enqueued so far. Events of one
    stream are passed in order, so a span holds the device's work between two marks and the time
    that the stream had to wait for the host inside it; consecutive spans leave no gap. Host time
    hidden behind device work is not counted twice. The wall time ends when the device is idle.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        self._device = torch.device(device)

    def start(self) -> None:
        """Begin the epoch once the device is idle."""
        torch.cuda.synchronize(self._device)
        self._marks: list[tuple[str, Any]] = []
        self._begin = time.perf_counter()
        self.mark()

    def mark(self, phase: str = "") -> None:
        """End a span on the stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        self._marks.append((phase, event))

    def stop(self) -> tuple[float, dict[str, float]]:
        """Wall time and time by phase, after a synchronisation with the device."""
        torch.cuda.synchronize(self._device)
        wall = time.perf_counter() - self._begin
        phases = dict.fromkeys(PHASES, 0.0)
        for (_, begin), (phase, end) in zip(self._marks, self._marks[1:], strict=False):
            if phase:
                phases[phase] += begin.elapsed_time(end) / 1e3
        self._marks = []
        return wall, phases


def clock_for(device: torch.device | str) -> Clock:
    """The clock that tells the truth on a device."""
    return CudaClock(device) if torch.device(device).type == "cuda" else HostClock()
