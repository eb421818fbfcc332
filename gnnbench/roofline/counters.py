"""Hardware counters of a batch's kernels: perf's on a CPU, Nsight Compute's on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gnnbench.kernels.ceilings import mark
from gnnbench.roofline import ncu, perf
from gnnbench.roofline.kernels import Kernel, KernelKey


class CounterRecord(KernelKey, total=False):
    """Hardware counters of one kernel; ``counters`` names the tool, or says why there are none."""

    counters: str
    l1_hit: float | None
    l2_hit: float | None
    memory_bytes: float | None
    flops_run: float | None
    compute_throughput: float | None
    memory_throughput: float | None


def on_cpu(kernels: Sequence[Kernel], sweep: Callable[[], None]) -> list[CounterRecord]:
    """Count each kernel with perf. ``sweep`` evicts its data from the caches beforehand."""
    records: list[CounterRecord] = []
    for kernel in kernels:
        run = kernel.ready()
        sweep()
        try:
            rates = perf.rates(perf.counted(run))
        except perf.NoCounters as error:
            records.append(_uncounted(kernel, error))
        else:
            records.append({**kernel.key(), "counters": "perf", **rates})
    return records


def on_gpu(kernels: Sequence[Kernel], program: Sequence[str]) -> list[CounterRecord]:
    """The same with Nsight Compute; ``program`` is a command that calls :func:`run_marked`."""
    try:
        launches = ncu.launched(program)
        if len(launches) != len(kernels):
            raise perf.NoCounters(f"'ncu' saw {len(launches)} kernels of {len(kernels)}")
    except perf.NoCounters as error:
        return [_uncounted(kernel, error) for kernel in kernels]
    return [
        {**kernel.key(), "counters": "ncu", **ncu.rates(one)}
        for kernel, one in zip(kernels, launches, strict=True)
    ]


def _uncounted(kernel: Kernel, error: perf.NoCounters) -> CounterRecord:
    return {**kernel.key(), "counters": f"none: {error}"}


def run_marked(kernels: Sequence[Kernel], device: torch.device) -> None:
    """Run each kernel once behind a mark; only these are between the profiler's start and stop."""
    like = torch.empty(0, device=device)
    for kernel in kernels:
        kernel.ready()()  # a first call loads modules and chooses algorithms
        run = kernel.ready()
        torch.cuda.synchronize(device)
        torch.cuda.cudart().cudaProfilerStart()
        mark(like)
        run()
        torch.cuda.synchronize(device)
        torch.cuda.cudart().cudaProfilerStop()
