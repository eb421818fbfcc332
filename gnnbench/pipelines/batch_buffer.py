"""Batches and their rows in buffers that two processes share, and the words that go between them.

A buffer holds one batch at a time; whatever lies at one address (the nodes of an outer block are
the first of an inner one's) is written once::

    | seeds | input block: offsets, columns, nodes | next block: offsets, columns | ... | rows | ...
    0       each part begins at a multiple of ALIGN bytes                         a quarter to grow

What lies where (``Part``) goes with the word that hands the buffer over. The producer writes to
buffers in turn, each again only when the consumer has said that its batch is done; on a GPU both
words come with an event, for the work that they speak of may still be going on.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.interprocess import (
    Address,
    DeviceMemory,
    HostMemory,
    Memory,
    OpenedDeviceMemory,
    OpenedHostMemory,
)
from gnnbench.measure.timeline import Span

ALIGN = 256
LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class Part:
    """Where a tensor lies in a buffer: from byte ``begin``, contiguous."""

    begin: int
    dtype: torch.dtype
    shape: tuple[int, ...]

    def of(self, memory: Tensor) -> Tensor:
        """The tensor, in place; ``memory`` is the buffer as bytes."""
        size = self.dtype.itemsize * torch.Size(self.shape).numel()
        return memory[self.begin : self.begin + size].view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class Handed:
    """A buffer is full: ``batch`` has a ``Part`` in place of every tensor.

    ``address`` and ``size`` are given where its memory is another than before, ``event`` (of CUDA
    IPC) the first time: it is passed when the buffer is written.
    """

    place: int
    batch: MiniBatch
    rows: Part
    address: Address | None
    size: int
    event: bytes | None


@dataclass(frozen=True)
class Done:
    """Nobody reads a buffer any more once ``event`` is passed, which comes the first time."""

    place: int
    event: bytes | None = None


@dataclass(frozen=True)
class Epoch:
    """Run an epoch; ``seeds`` are those of all batches, ``lengths`` says how many each has."""

    number: int
    seeds: Any
    lengths: list[int]


@dataclass(frozen=True)
class Foresee:
    """Get ready for an epoch, as an oracle."""

    number: int


@dataclass(frozen=True)
class Stop:
    """The consumer has given up the epoch: hand over no more of it."""


@dataclass(frozen=True)
class Over:
    """What was asked for is done. Of an epoch: its counts and spans; ``peak_bytes`` of memory that
    the producer holds by itself."""

    counts: list[list[Any]]
    spans: list[Span]
    peak_bytes: int


@dataclass(frozen=True)
class Failed:
    """What was asked for has failed: the exception, pickled where it can be, and in words."""

    error: bytes | None
    words: str

    @classmethod
    def by(cls, error: BaseException) -> Failed:
        """What another process is told of an exception."""
        words = f"{type(error).__name__}: {error}"
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # one with arguments of its own may not come out again
        except Exception:
            return cls(None, words)
        return cls(pickled, words)

    def exception(self) -> BaseException:
        """The exception, or a ``RuntimeError`` in its words where this process cannot have it."""
        try:
            found = pickle.loads(self.error) if self.error is not None else None
        except Exception:
            found = None
        return found if isinstance(found, BaseException) else RuntimeError(self.words)


class Layout:
    """Gives tensors their places in a buffer, one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self.parts: list[tuple[Part, Tensor]] = []
        self._at: dict[tuple[int, torch.dtype], tuple[int, int]] = {}  # begin and elements

    def place(self, tensor: Tensor) -> Part:
        """Where a tensor goes; nowhere anew if it is the beginning of one that is there."""
        tensor = tensor.detach().contiguous()
        key = (tensor.data_ptr(), tensor.dtype)
        begin, known = self._at.get(key, (0, 0))
        if tensor.numel() > known:
            begin = self.size
            self.size += -(-tensor.numel() * tensor.element_size() // ALIGN) * ALIGN
            self._at[key] = begin, tensor.numel()
            part = Part(begin, tensor.dtype, tuple(tensor.shape))
            self.parts.append((part, tensor))
            return part
        return Part(begin, tensor.dtype, tuple(tensor.shape))


def own_ids(batch: MiniBatch) -> None:
    """Copy a batch's ids out of the memory that its parts share: the audit keeps them, not it."""
    batch.seeds = batch.seeds.clone()
    kept: dict[int, Tensor] = {}
    for block in batch.blocks:  # the input layer first: the others' are its beginning
        nodes, at = block.src_nodes, block.src_nodes.data_ptr()
        if at not in kept or kept[at].numel() < nodes.numel():
            kept[at] = nodes.clone()
        block.src_nodes = kept[at][: nodes.numel()]


class OutBuffer:
    """The producer's side of one buffer."""

    def __init__(self, place: int, device: torch.device) -> None:
        self._place, self._device = place, device
        self.free = True
        self.grown = self.written = 0  # times that it was made or made larger; bytes
        self._memory: Memory | None = None
        self._given_up: list[Memory] = []  # which the consumer may still have open
        self._full: Any = None
        self._read: Any = None

    @property
    def size(self) -> int:
        """Its bytes."""
        return 0 if self._memory is None else self._memory.whole.numel()

    def await_reader(self) -> None:
        """On a GPU: whatever is enqueued from now on comes after the reading of the last batch."""
        if self._read is not None:
            self._read.wait(torch.cuda.current_stream(self._device))

    def write(self, batch: MiniBatch, rows: Tensor) -> Handed:
        """Copy a batch and its rows into the buffer, which must be free; the word for it."""
        layout = Layout()
        parts = batch.mapped(layout.place)
        of_rows = layout.place(rows)
        address = self._room(layout.size)
        assert self._memory is not None
        for part, tensor in layout.parts:
            part.of(self._memory.whole).copy_(tensor)
        self.written += layout.size
        self.free = False
        event = self._mark() if self._device.type == "cuda" else None
        return Handed(self._place, parts, of_rows, address, self.size, event)

    def done(self, word: Done) -> None:
        """The consumer has let go of the batch, and of memory that was replaced."""
        self.free = True
        if word.event is not None:
            self._read = torch.cuda.Event.from_ipc_handle(self._device, word.event)
        while self._given_up:
            self._given_up.pop().close()

    def _room(self, size: int) -> Address | None:
        """Have so many bytes; the address of the memory where it is another."""
        if self._memory is not None and size <= self._memory.whole.numel():
            return None
        size = max(-(-(size + size // 4) // ALIGN) * ALIGN, LEAST_BYTES)
        on_host = self._device.type == "cpu"
        memory: Memory = HostMemory(size) if on_host else DeviceMemory(size, self._device)
        if self._memory is not None:
            self._given_up.append(self._memory)
        self._memory = memory
        self.grown += 1
        return self._memory.address

    def _mark(self) -> bytes | None:
        """Set the event behind the copies; its handle the first time."""
        new = self._full is None
        if new:
            self._full = torch.cuda.Event(interprocess=True)
        self._full.record(torch.cuda.current_stream(self._device))
        handle: bytes | None = self._full.ipc_handle() if new else None
        return handle


class InBuffer:
    """The consumer's side of one buffer."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: Memory | None = None
        self._full: Any = None
        self._read: Any = None

    def open(self, word: Handed) -> None:
        """Learn where the buffer is; on a GPU what is enqueued from now on comes after its writing.
        Nobody reads the memory that it replaces any more."""
        if word.address is not None:
            self.close()
            self._memory = (
                OpenedHostMemory(word.address)
                if self._device.type == "cpu"
                else OpenedDeviceMemory(word.address, word.size, self._device)
            )
        if word.event is not None:
            self._full = torch.cuda.Event.from_ipc_handle(self._device, word.event)
        if self._full is not None:
            self._full.wait(torch.cuda.current_stream(self._device))

    def batch(self, word: Handed) -> tuple[MiniBatch, Tensor]:
        """The batch and its rows, in place but for ids, which whoever counts the batch keeps."""
        assert self._memory is not None
        memory = self._memory.whole
        found = word.batch.mapped(lambda part: part.of(memory))
        own_ids(found)
        return found, word.rows.of(memory)

    def done(self, place: int) -> Done:
        """The word that the batch is done, when the work enqueued so far is."""
        if self._device.type == "cpu":
            return Done(place)
        new = self._read is None
        if new:
            self._read = torch.cuda.Event(interprocess=True)
        self._read.record(torch.cuda.current_stream(self._device))
        return Done(place, self._read.ipc_handle() if new else None)

    def close(self) -> None:
        """Let go of the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None
