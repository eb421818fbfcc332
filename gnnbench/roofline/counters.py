"""Hardware counters of a batch's kernels: perf's on a CPU, Nsight Compute's on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gnnbench.kernels.ceilings import mark
from gnnbench.roofline import ncu, perf
from gnnbench.roofline.kernels import Kernel

Record = dict[str, Any]


def on_cpu(kernels: Sequence[Kernel], sweep: Callable[[], None]) -> list[Record]:
    """A record of each kernel: which it is, its rates, and ``counters``: how they were had, or why
    there are none. ``sweep`` empties the caches."""
    found = []
    for kernel in kernels:
        run = kernel.ready()
        sweep()
        try:
            told: Record = {"counters": "perf", **perf.rates(perf.counted(run))}
        except perf.NoCounters as refused:
            told = _none(refused)
        found.append({**kernel.ident(), **told})
    return found


def on_gpu(kernels: Sequence[Kernel], program: Sequence[str]) -> list[Record]:
    """The same; ``program`` is the command of a process that calls :func:`run_marked` for them."""
    try:
        counts = ncu.counted(program)
        if len(counts) != len(kernels):
            raise perf.NoCounters(f"'ncu' saw {len(counts)} kernels of {len(kernels)}")
    except perf.NoCounters as refused:
        return [{**kernel.ident(), **_none(refused)} for kernel in kernels]
    return [
        {**kernel.ident(), "counters": "ncu", **ncu.rates(one)}
        for kernel, one in zip(kernels, counts, strict=True)
    ]


def _none(refused: perf.NoCounters) -> Record:
    return {"counters": f"none: {refused}"}


def run_marked(kernels: Sequence[Kernel], device: torch.device) -> None:
    """Each kernel once, a mark before it; nothing else is between the profiler's start and stop."""
    like = torch.empty(0, device=device)
    for kernel in kernels:
        kernel.ready()()  # what is loaded and chosen at a first call
        run = kernel.ready()
        torch.cuda.synchronize(device)
        torch.cuda.cudart().cudaProfilerStart()
        mark(like)
        run()
        torch.cuda.synchronize(device)
        torch.cuda.cudart().cudaProfilerStop()
