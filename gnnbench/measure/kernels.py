"""Kernels, copies and clears of a GPU by name, as its profiling interface reports them."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypedDict

import torch

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")  # of a trace's events


class KernelRow(TypedDict):
    """A row of ``kernels.csv`` without the cell's id; ``calls`` and ``device_s`` are per batch."""

    kernel: str
    calls: float
    device_s: float
    grid: str
    block: str
    registers: int | None
    shared_bytes: int | None
    occupancy: float | None


LaunchArguments = TypedDict(
    "LaunchArguments",
    {
        "grid": list[int],
        "block": list[int],
        "registers per thread": int,
        "shared memory": int,
        "est. achieved occupancy %": float,
    },
    total=False,
)


class TraceEvent(TypedDict, total=False):
    """An event of a trace in Chrome's format; ``dur`` in microseconds."""

    cat: str
    name: str
    dur: float
    args: LaunchArguments


def kernels_of(work: Callable[[], object], batches: int, device: torch.device) -> list[KernelRow]:
    """Run ``work`` on a GPU under the profiler and return its kernels.

    Kernels of CUDA graphs are included. The list is empty if the profiling interface fails.
    """
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize(device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return kernel_rows(events, batches)


def kernel_rows(events: Iterable[TraceEvent], batches: int) -> list[KernelRow]:
    """Summarize the events of a trace by kernel, in descending order of time."""
    by_name: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        if event.get("cat") in GPU_CATEGORIES:
            by_name[event["name"]].append(event)
    rows: list[KernelRow] = []
    for name, calls in by_name.items():
        launches = [e["args"] for e in calls]
        shapes = Counter((_shape(a.get("grid")), _shape(a.get("block"))) for a in launches)
        (grid, block), _ = shapes.most_common(1)[0]
        occupancy = [a.get("est. achieved occupancy %") for a in launches]
        known = [o for o in occupancy if o is not None]
        rows.append(
            {
                "kernel": name,
                "calls": len(calls) / batches,
                "device_s": sum(e["dur"] for e in calls) / 1e6 / batches,
                "grid": grid,
                "block": block,
                "registers": launches[0].get("registers per thread"),
                "shared_bytes": launches[0].get("shared memory"),
                "occupancy": statistics.median(known) / 100 if known else None,
            }
        )
    return sorted(rows, key=lambda r: -r["device_s"])


def _shape(sizes: list[int] | None) -> str:
    return "x".join(map(str, sizes or []))
