"""Schedule stage: how the phases of an epoch's batches follow one another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from gnnbench.stages.clock import Clock, HostClock

S = TypeVar("S")  # what the system's sampler returns
I = TypeVar("I")  # noqa: E741  what the model is fed


@dataclass
class EpochTrace(Generic[S]):
    """What one epoch took: wall time, time by phase (seconds), losses and samples kept.

    ``device_s``: time between events around an epoch's samples, where only that was run on a GPU.
    """

    wall_s: float = 0.0
    phases_s: dict[str, float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    kept: list[S] = field(default_factory=list)
    device_s: float | None = None


def run_serial(
    batches: Callable[[], list[Tensor]],
    sample: Callable[[Tensor, int], S],
    load: Callable[[S], I],
    compute: Callable[[I], Tensor],
    keep: Callable[[S], S],
    clock: Clock | None = None,
) -> EpochTrace[S]:
    """Sample, load and compute one batch after the other.

    The wall time is taken around everything an epoch needs, the batch order included; the phases
    are spans inside it, so their sum leaves a residual. Nothing here waits for a device between
    batches: ``compute`` returns the loss as a 0-d tensor, and all losses are read together at the
    end. ``keep`` picks what is needed to recount the batch once the clock has stopped. ``clock`` is
    the host's where none is given.
    """
    clock = clock or HostClock()
    trace: EpochTrace[S] = EpochTrace()
    losses: list[Tensor] = []
    clock.start()
    for number, seeds in enumerate(batches()):
        clock.mark()
        drawn = sample(seeds, number)
        clock.mark("sample")
        inputs = load(drawn)
        clock.mark("memory_io")
        losses.append(compute(inputs))
        clock.mark("compute")
        trace.kept.append(keep(drawn))
    trace.wall_s, trace.phases_s = clock.stop()
    trace.losses = torch.stack(losses).tolist() if losses else []
    return trace


def run_sampling(
    batches: Callable[[], list[Tensor]],
    sample: Callable[[Tensor, int], S],
    keep: Callable[[S], Any],
    device: torch.device,
) -> EpochTrace[Any]:
    """Sample the batches one after the other and do nothing else with them.

    ``sample`` returns with the batch's sizes known to the host; on a GPU its last kernels may still
    run then. The phase ``sample`` is the wall time from the first call to the end of the last one's
    work; making the batch order is in ``wall_s`` only. ``keep`` is called within the phase.
    """
    gpu = device.type == "cuda"
    trace: EpochTrace[Any] = EpochTrace()
    if gpu:
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    todo = batches()
    if gpu:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
    begin = time.perf_counter()
    if gpu:
        first.record()
    for number, seeds in enumerate(todo):
        trace.kept.append(keep(sample(seeds, number)))
    if gpu:
        last.record()
        torch.cuda.synchronize(device)
    end = time.perf_counter()
    trace.wall_s, trace.phases_s = end - start, {"sample": end - begin}
    if gpu:
        trace.device_s = first.elapsed_time(last) / 1e3
    return trace
