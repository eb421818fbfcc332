"""Duration of a part of an epoch, summed while the epoch runs and read after it."""

from __future__ import annotations

import time

import torch


class Stopwatch:
    """Context that measures the time spent in it. It may be entered repeatedly, but not nested.

    On a GPU it records events of the current stream; only ``take`` waits for them.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._on_gpu = device.type == "cuda"
        self._total_s = 0.0
        self._begin_s = 0.0
        self._events: list[torch.cuda.Event] = []  # begin, end, begin, end ...

    def __enter__(self) -> None:
        if self._on_gpu:
            self._record()
        else:
            self._begin_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._on_gpu:
            self._record()
        else:
            self._total_s += time.perf_counter() - self._begin_s

    def take(self) -> float:
        """Return the seconds since the last call; waits for the GPU."""
        total_s, self._total_s = self._total_s, 0.0
        events, self._events = self._events, []
        if events:
            torch.cuda.synchronize(self._device)
        pairs = zip(events[::2], events[1::2], strict=True)
        return total_s + sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3

    def _record(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        self._events.append(event)
