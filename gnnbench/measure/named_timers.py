"""Seconds of pieces of work by name, of the host or of a GPU that is not waited for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


class Spent:
    """Adds up what is spent within ``of``.

    On a CPU by the host's clock. On a GPU, whose work the host only begins, between two events in
    the current stream: nothing is waited for until ``take``.
    """

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._marked: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def of(self, name: str, device: torch.device) -> Iterator[None]:
        """Around work of a name on a device."""
        over = self.begin(name, device)
        yield
        over()

    def begin(self, name: str, device: torch.device) -> Callable[[], None]:
        """Begin work of a name on a device; what is returned is to be called at its end, by any
        thread, on a GPU where the current stream waits for it."""
        if device.type != "cuda":
            began = time.perf_counter()

            def over() -> None:
                self._seconds[name] += time.perf_counter() - began

            return over
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()

        def passed() -> None:
            end.record()
            self._marked.append((name, begin, end))

        return passed

    def take(self) -> dict[str, float]:
        """Seconds by name since the last call, once the device has come to their ends."""
        marked, self._marked = self._marked, []
        for name, begin, end in marked:
            end.synchronize()
            self._seconds[name] += begin.elapsed_time(end) / 1e3
        found, self._seconds = dict(self._seconds), defaultdict(float)
        return found
