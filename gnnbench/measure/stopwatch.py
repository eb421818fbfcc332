"""Time of a part of an epoch, added up while the epoch runs and read after it."""

from __future__ import annotations

import time
from typing import Any

import torch


class Stopwatch:
    """A context that times what is in it, entered as often as need be, not within itself.

    On a GPU between events of the current stream, which nobody waits for before ``take``.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[Any, Any]] = []
        self._begin: Any = None

    def __enter__(self) -> None:
        self._begin = self._mark()

    def __exit__(self, *_: object) -> None:
        self._marks.append((self._begin, self._mark()))

    def take(self) -> float:
        """Seconds since the last call; waits for the GPU."""
        marks, self._marks = self._marks, []
        if self._device.type != "cuda":
            return float(sum(end - begin for begin, end in marks))
        if marks:
            torch.cuda.synchronize(self._device)
        return float(sum(begin.elapsed_time(end) for begin, end in marks)) / 1e3

    def _mark(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event
