"""Schedule stage: how the phases of an epoch's batches follow one another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

S = TypeVar("S")  # what the system's sampler returns
I = TypeVar("I")  # noqa: E741  what the model is fed


@dataclass
class EpochTrace(Generic[S]):
    """What one epoch took: wall time, time by phase (seconds), losses and samples kept."""

    wall_s: float = 0.0
    phases_s: dict[str, float] = field(
        default_factory=lambda: {"sample": 0.0, "memory_io": 0.0, "compute": 0.0}
    )
    losses: list[float] = field(default_factory=list)
    kept: list[S] = field(default_factory=list)


def run_serial(
    batches: Callable[[], list[Tensor]],
    sample: Callable[[Tensor, int], S],
    load: Callable[[S], I],
    compute: Callable[[I], float],
    keep: Callable[[S], S],
) -> EpochTrace[S]:
    """Sample, load and compute one batch after the other, on the host's clock.

    The wall time is taken around everything an epoch needs, the batch order included; the phases
    are spans inside it, so their sum leaves a residual. ``keep`` picks what is needed to recount
    the batch once the clock has stopped.
    """
    clock = time.perf_counter
    trace: EpochTrace[S] = EpochTrace()
    phases = trace.phases_s
    start = clock()
    for number, seeds in enumerate(batches()):
        t0 = clock()
        drawn = sample(seeds, number)
        t1 = clock()
        inputs = load(drawn)
        t2 = clock()
        trace.losses.append(compute(inputs))
        t3 = clock()
        phases["sample"] += t1 - t0
        phases["memory_io"] += t2 - t1
        phases["compute"] += t3 - t2
        trace.kept.append(keep(drawn))
    trace.wall_s = clock() - start
    return trace
