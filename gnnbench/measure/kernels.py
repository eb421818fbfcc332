"""What a GPU ran, by name: kernels, copies and clears, as its profiling interface reports them."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]

RAN = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of a trace's events


def kernels_of(work: Callable[[], object], batches: int, device: torch.device) -> list[Row]:
    """Rows of ``kernels.csv`` without the cell's id, per batch, of ``work`` on a GPU.

    What runs out of a CUDA graph is among them. None where the profiling interface does not run.
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


def kernel_rows(events: Iterable[Row], batches: int) -> list[Row]:
    """Rows from the events of a trace in Chrome's format, what takes longest first."""
    by_name: defaultdict[str, list[Row]] = defaultdict(list)
    for event in events:
        if event.get("cat") in RAN:
            by_name[event["name"]].append(event)
    rows = []
    for name, calls in by_name.items():
        shapes = Counter((_dims(e, "grid"), _dims(e, "block")) for e in calls)
        (grid, block), _ = shapes.most_common(1)[0]
        occupancy = [e["args"].get("est. achieved occupancy %") for e in calls]
        known = [o for o in occupancy if o is not None]
        rows.append(
            {
                "kernel": name,
                "calls": len(calls) / batches,
                "device_s": sum(e["dur"] for e in calls) / 1e6 / batches,
                "grid": grid,
                "block": block,
                "registers": calls[0]["args"].get("registers per thread"),
                "shared_bytes": calls[0]["args"].get("shared memory"),
                "occupancy": statistics.median(known) / 100 if known else None,
            }
        )
    return sorted(rows, key=lambda r: -r["device_s"])


def _dims(event: Row, key: str) -> str:
    return "x".join(str(n) for n in event["args"].get(key, []))
