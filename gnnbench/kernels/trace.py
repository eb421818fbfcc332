"""Times of the steps inside a native whole-batch sampler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from gnnbench.kernels.library import native_operators

T = TypeVar("T")

# As numbered in native/include/gnnbench/stage.h.
STAGES = ("prepare", "pick", "id_map", "block")


@dataclass(frozen=True)
class Mark:
    """Time between two marks, in seconds; ``hop`` counts from 0 and is -1 for work of all hops.

    ``device_s`` is the time between events on the stream, 0 on a CPU.
    """

    stage: str
    hop: int
    host_s: float
    device_s: float


def traced(call: Callable[[], T], device: torch.device | str = "cpu") -> tuple[T, list[Mark]]:
    """Run ``call``; returns its result and the marks of the native samplers on this thread.

    On a GPU it waits for the device at the end; the events cost about 2 us a mark.
    """
    like = torch.empty(0, device=device)
    with native_operators() as ops:
        ops.trace(like, True)
    try:
        result = call()
    finally:
        with native_operators() as ops:
            rows = ops.trace(like, False).tolist()
    return result, [Mark(STAGES[int(stage)], int(hop), *times) for stage, hop, *times in rows]
