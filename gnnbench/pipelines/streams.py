"""Where the work of a phase goes: a stream of its own on a GPU; on a CPU it is done at once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch

from gnnbench.kernels.sm_budget import limited_stream

LINK, EVEN = FIRST = ("link", "even")  # whose kernels a GPU begins first
# The link, then what it waits for, before what fills the multiprocessors anyway: lower is earlier.
PRIORITIES = {LINK: {"memory_io": -2, "sample": -1}, EVEN: {"memory_io": 0, "sample": 0}}


class Lane:
    """Of the host: work is done when its call returns, and nothing is to be waited for."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def entered(self) -> AbstractContextManager[Any]:
        """A context of one thread in which work goes to the lane."""
        return nullcontext()

    def mark(self) -> Any:
        """What is passed once the work so far is done."""
        return None

    def after(self, mark: Any) -> None:
        """The work from now on is done after a mark of any lane; the host does not wait."""


class StreamLane(Lane):
    """Of a GPU's stream."""

    def __init__(self, stream: torch.cuda.Stream, name: str = "") -> None:
        super().__init__(name)
        self._stream = stream

    def entered(self) -> AbstractContextManager[Any]:
        """The stream and its device are the thread's current ones."""
        return torch.cuda.stream(self._stream)

    def mark(self) -> torch.cuda.Event:
        """An event behind the work so far."""
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def after(self, mark: torch.cuda.Event) -> None:
        """The stream waits for the event."""
        self._stream.wait_event(mark)


def own_lane(device: torch.device) -> Lane:
    """The caller's: its current stream."""
    return StreamLane(torch.cuda.current_stream(device)) if device.type == "cuda" else Lane()


def side_lane(device: torch.device, name: str, first: str = EVEN, sms: int = 0) -> Lane:
    """Another one, by this name in timelines; its kernels run on ``sms`` multiprocessors, 0: all.

    Those that nobody else may use know no priorities: there ``first`` makes no difference.

    Raises as ``gnnbench.kernels.sm_budget.limited_stream``.
    """
    if device.type != "cuda":
        return Lane(name)
    stream = limited_stream(device, sms).stream if sms else _stream(device, name, first)
    return StreamLane(stream, name)


@cache  # torch's allocator has memory for each stream: another one each epoch would leave it
def _stream(device: torch.device, name: str, first: str) -> torch.cuda.Stream:
    return torch.cuda.Stream(device, priority=PRIORITIES[first][name])
