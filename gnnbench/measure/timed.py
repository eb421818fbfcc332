"""Seconds of one piece of work by itself, on the harness's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar("T")

# Work is enqueued while the device is kept busy for this many of its cycles, some milliseconds: how
# long the host takes to launch it is no part of its time where a timed epoch hides it.
AHEAD = 10_000_000


def timed(run: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """What ``run`` returns, and its time (s): on a GPU the device's own, launches apart."""
    if device.type != "cuda":
        begin = time.perf_counter()
        result = run()
        return result, time.perf_counter() - begin
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.current_stream(device)
    torch.cuda.synchronize(device)
    torch.cuda._sleep(AHEAD)
    first.record(stream)
    result = run()
    last.record(stream)
    torch.cuda.synchronize(device)
    return result, first.elapsed_time(last) / 1e3
