"""Memory as it is taken: what torch's allocator gave out around a piece of work, and what is
resident of a process and of tensors that are mapped."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

OWN = Path("/proc/self")
RESET_PEAK = "5"  # written to clear_refs; proc(5)
PAGE = resource.getpagesize()
PRESENT = np.uint64(63)  # bit of a word of pagemap
ENTRIES = 1 << 20  # pages of one read


@dataclass
class Span:
    """Bytes that a piece of work allocated: ``net`` at its end (negative if it freed more), and at
    most ``peak`` in between."""

    net: int = 0
    peak: int = 0


@contextlib.contextmanager
def allocating(device: torch.device) -> Iterator[Span]:
    """Count what torch's allocator of ``device`` allocates and frees; the span is filled at exit.

    On a CPU it counts the calling thread, by torch's profiler, without libraries that allocate by
    themselves.
    """
    span = Span()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        begin = torch.cuda.memory_allocated(device)
        yield span
        torch.cuda.synchronize(device)
        span.net = torch.cuda.memory_allocated(device) - begin
        span.peak = torch.cuda.max_memory_allocated(device) - begin
        return
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        yield span
    results = profiler.profiler.kineto_results
    events = [e for e in results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        span.net += event.nbytes()
        span.peak = max(span.peak, span.net)


def resident_bytes() -> int:
    """Memory of this process that is resident now."""
    return _status("VmRSS:")


def private_bytes() -> int:
    """Memory of this process that is neither mapped from a file nor shared, as it is now: of that
    the kernel knows no peak."""
    return _status("RssAnon:")


def forget_peak() -> None:
    """Let the peak of resident memory begin anew; where the kernel forbids it, it stays."""
    with contextlib.suppress(OSError):
        (OWN / "clear_refs").write_text(RESET_PEAK)


def resident_peak_bytes() -> int:
    """The most that was resident since ``forget_peak``."""
    known = _status("VmHWM:")
    return known or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(field: str) -> int:
    lines = (OWN / "status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def resident_of(tensors: Sequence[Tensor]) -> int:
    """Bytes of the pages of host tensors that are resident in this process.

    Of a tensor mapped from a file those that were read so far. Raises ``OSError`` where the kernel
    does not show its page map.
    """
    with (OWN / "pagemap").open("rb", buffering=0) as file:
        return sum(_resident(file, t) for t in tensors if t.nbytes)


def _resident(file: IO[bytes], tensor: Tensor) -> int:
    begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    first, last = begin // PAGE, -(-end // PAGE)
    present = 0
    for at in range(first, last, ENTRIES):
        file.seek(at * 8)
        words = np.frombuffer(file.read(8 * min(ENTRIES, last - at)), np.uint64)
        present += int((words >> PRESENT & np.uint64(1)).sum())
    return min(present * PAGE, tensor.nbytes)


def free_on(device: torch.device) -> int:
    """Bytes that this process can still have of a GPU: what nobody holds, and what torch holds and
    has not given out."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + unused
