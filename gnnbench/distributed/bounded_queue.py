"""The places of a bounded queue: host memory that processes share, each place for one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.interprocess import HostMemory, OpenedHostMemory
from gnnbench.kernels.locked import lock, unlock
from gnnbench.pipelines.batch_buffer import ALIGN, Layout, own_ids


@dataclass(frozen=True)
class Room:
    """Memory of place ``place``; ``version`` counts how often it was made anew."""

    place: int
    address: str
    version: int


class Places:
    """The process that owns them; nobody else's end frees them, and nothing has a name on disk."""

    def __init__(self, number: int) -> None:
        self._memory: list[HostMemory | None] = [None] * number
        self._versions = [0] * number

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def bytes(self) -> int:
        """Of all places together."""
        return sum(m.whole.numel() for m in self._memory if m is not None)

    def room(self, place: int, size: int) -> Room:
        """A place of ``size`` bytes at least, which nobody reads any more; larger ones replace it
        with a quarter to grow. Raises ``OSError``."""
        memory = self._memory[place]
        if memory is None or memory.whole.numel() < size:
            made = HostMemory(-(-(size + size // 4) // ALIGN) * ALIGN or ALIGN)
            if memory is not None:
                memory.close()
            memory = self._memory[place] = made
            self._versions[place] += 1
        return Room(place, str(memory.address), self._versions[place])

    def close(self) -> None:
        """Give all of them up; who has one open keeps it."""
        for memory in self._memory:
            if memory is not None:
                memory.close()
        self._memory = [None] * len(self._memory)


class Shelf:
    """One process's view of the places: it writes a batch to its place or takes one out.

    For a GPU the memory is locked, in each process that copies to or from it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._open: dict[int, tuple[int, OpenedHostMemory]] = {}  # by place, with its version
        self.written = 0  # bytes

    def write(self, layout: Layout, room: Room) -> None:
        """Copy what ``layout`` placed; done on return."""
        memory = self._memory(room)
        for part, tensor in layout.parts:
            part.of(memory).copy_(tensor, non_blocking=True)
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
        self.written += layout.size

    def take(self, parts: MiniBatch, size: int, room: Room) -> MiniBatch:
        """The batch whose tensors are ``parts`` of a place, copied to the device in one piece.

        On return the place may be written again, whatever has been enqueued.
        """
        memory = self._memory(room)[:size]
        if self._device.type == "cuda":
            there = memory.to(self._device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(torch.cuda.current_stream(self._device))
            copied.synchronize()
        else:
            there = memory.clone()
        found = parts.mapped(lambda part: part.of(there))
        own_ids(found)  # the audit keeps them: not the edges beside them
        return found

    def close(self) -> None:
        """Let go of all memory."""
        for place in list(self._open):
            self._drop(place)

    def _memory(self, room: Room) -> Tensor:
        version, memory = self._open.get(room.place, (0, None))
        if memory is None or version != room.version:
            self._drop(room.place)
            memory = OpenedHostMemory(room.address)
            self._open[room.place] = room.version, memory
            if self._device.type == "cuda" and (code := lock(memory.whole)):
                del self._open[room.place]
                raise HostMemoryError(
                    f"{memory.whole.numel()} bytes of the queue's memory cannot be locked for the"
                    f" GPU (CUDA error {code}); give schedule.queue a smaller number, or raise the"
                    " limit of locked memory (ulimit -l)"
                )
        return memory.whole

    def _drop(self, place: int) -> None:
        if place in self._open:
            _, memory = self._open.pop(place)
            if self._device.type == "cuda":
                unlock(memory.whole)
            memory.close()
