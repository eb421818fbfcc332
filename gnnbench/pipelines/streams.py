"""Where the work of a phase goes: a stream of a GPU; on a CPU it is done when the call returns."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from gnnbench.kernels.sm_budget import limited_stream

Mark = torch.cuda.Event | None  # a point in a stream's work; None on a CPU

LINK, EVEN = FIRST = ("link", "even")  # whose kernels a GPU starts first
# Kernels that use the link first, then sampling, which they wait for, then compute, which fills the
# multiprocessors anyway: a lower number is earlier.
PRIORITIES = {
    LINK: {"memory_io": -2, "sample": -1},
    EVEN: {"memory_io": 0, "sample": 0, "topology": 0},
}


class WorkStream:
    """The host: work is done when its call returns, and nothing needs waiting for.

    ``name`` is the lane of its spans in timelines.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name

    def entered(self) -> AbstractContextManager[object]:
        """Return a context in which the thread's work goes to this stream."""
        return nullcontext()

    def mark(self) -> Mark:
        """Mark the end of the work so far."""
        return None

    def wait_for(self, mark: Mark) -> None:
        """Order later work of this stream after a mark of any stream; the host does not wait."""


class CudaWorkStream(WorkStream):
    """A CUDA stream."""

    def __init__(self, stream: torch.cuda.Stream, name: str = "") -> None:
        super().__init__(name)
        self._stream = stream

    def entered(self) -> AbstractContextManager[object]:
        """Make the stream and its device the thread's current ones."""
        return torch.cuda.stream(self._stream)

    def mark(self) -> Mark:
        """Record an event."""
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def wait_for(self, mark: Mark) -> None:
        """Have the stream wait for the event."""
        assert mark is not None
        self._stream.wait_event(mark)


def current_stream(device: torch.device) -> WorkStream:
    """Return the caller's current stream."""
    if device.type != "cuda":
        return WorkStream()
    return CudaWorkStream(torch.cuda.current_stream(device))


def side_stream(device: torch.device, name: str, first: str = EVEN, sms: int = 0) -> WorkStream:
    """Return another stream of this name; its kernels run on ``sms`` multiprocessors, 0: all.

    ``first`` sets its priority (``PRIORITIES``); it has no effect on a stream with reserved
    multiprocessors. Raises like ``gnnbench.kernels.sm_budget.limited_stream``.
    """
    if device.type != "cuda":
        return WorkStream(name)
    stream = limited_stream(device, sms).stream if sms else _cuda_stream(device, name, first)
    return CudaWorkStream(stream, name)


@cache  # torch's allocator keeps memory for each stream: a new one each epoch would leak it
def _cuda_stream(device: torch.device, name: str, first: str) -> torch.cuda.Stream:
    return torch.cuda.Stream(device, priority=PRIORITIES[first][name])
