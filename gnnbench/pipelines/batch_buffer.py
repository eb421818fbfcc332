"""Batches and their rows in buffers that two processes share, and the messages about them.

A buffer contains one batch at a time. Tensors at the same address (the nodes of an outer block are
the first ones of an inner block) are written once::

    | seeds | input block: offsets, columns, nodes | next block: offsets, columns | ... | rows | ...
    0       each tensor begins at a multiple of ALIGN bytes                    a quarter to grow

The message that passes on a buffer says where each tensor is (``TensorSlice``). The producer writes
to the buffers in turn, and to each one again only after the consumer has released it. On a GPU both
messages come with an event, because the work that they announce may still run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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

ALIGN = 256
LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class TensorSlice:
    """A contiguous tensor in a buffer, from byte ``begin``."""

    begin: int
    dtype: torch.dtype
    shape: tuple[int, ...]

    def of(self, memory: Tensor) -> Tensor:
        """Return the tensor as a view of ``memory``, the buffer as uint8 ``[bytes]``."""
        size = self.dtype.itemsize * torch.Size(self.shape).numel()
        return memory[self.begin : self.begin + size].view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class BufferFilled:
    """A buffer has a batch; in ``batch`` a ``TensorSlice`` takes the place of every tensor.

    ``rows`` is None if the batch comes without rows. The first ``used`` of the buffer's ``size``
    bytes are written. ``address`` is set if the buffer has new memory, ``event`` (a CUDA IPC
    handle) the first time: the event is reached when the buffer is written.
    """

    buffer: int
    batch: MiniBatch[TensorSlice]
    rows: TensorSlice | None
    address: Address | None
    size: int
    used: int
    event: bytes | None


@dataclass(frozen=True)
class BufferReleased:
    """Nothing reads a buffer after ``event``, which is set the first time."""

    buffer: int
    event: bytes | None = None


class BufferLayout:
    """Assigns tensors to consecutive places in a buffer."""

    def __init__(self) -> None:
        self.size = 0
        self.slices: list[tuple[TensorSlice, Tensor]] = []
        self._placed: dict[tuple[int, torch.dtype], tuple[int, int]] = {}  # begin and elements

    def place(self, tensor: Tensor) -> TensorSlice:
        """Place a tensor; the beginning of a tensor that is placed takes no further bytes."""
        tensor = tensor.detach().contiguous()
        key = (tensor.data_ptr(), tensor.dtype)
        begin, elements = self._placed.get(key, (0, 0))
        if tensor.numel() > elements:
            tensor_slice = self.reserve(tensor.dtype, tuple(tensor.shape))
            self._placed[key] = tensor_slice.begin, tensor.numel()
            self.slices.append((tensor_slice, tensor))
            return tensor_slice
        return TensorSlice(begin, tensor.dtype, tuple(tensor.shape))

    def reserve(self, dtype: torch.dtype, shape: tuple[int, ...]) -> TensorSlice:
        """Place a tensor that is written later."""
        begin = self.size
        self.size += -(-torch.Size(shape).numel() * dtype.itemsize // ALIGN) * ALIGN
        return TensorSlice(begin, dtype, shape)


def copy_ids(batch: MiniBatch) -> None:
    """Copy a batch's ids out of the shared memory: the audit keeps the ids, not the memory."""
    batch.seeds = batch.seeds.clone()
    copies: dict[int, Tensor] = {}
    for block in batch.blocks:  # the input layer first: nodes of the others are its beginning
        nodes, address = block.src_nodes, block.src_nodes.data_ptr()
        if address not in copies or copies[address].numel() < nodes.numel():
            copies[address] = nodes.clone()
        block.src_nodes = copies[address][: nodes.numel()]


class ProducerBuffer:
    """The producer's side of one buffer.

    ``grown`` counts new memory, ``written`` bytes, and ``copied`` the bytes of rows that were
    gathered elsewhere first.
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self._number, self._device = number, device
        self.free = True
        self.grown = self.written = self.copied = 0
        self._memory: Memory | None = None
        self._is_announced = True  # the consumer has been sent the memory's address
        self._replaced: list[Memory] = []  # which the consumer may still have open
        self._written_event: torch.cuda.Event | None = None
        self._read_event: torch.cuda.Event | None = None

    @property
    def size(self) -> int:
        """Size in bytes."""
        return 0 if self._memory is None else self._memory.whole.numel()

    def await_reader(self) -> None:
        """On a GPU, order later work after the reading of the previous batch."""
        if self._read_event is not None:
            self._read_event.wait(torch.cuda.current_stream(self._device))

    def write(self, batch: MiniBatch, rows: Tensor | None) -> BufferFilled:
        """Copy a batch and its rows, if it has any, into the buffer, which must be free."""
        layout = BufferLayout()
        batch_slices = batch.mapped(layout.place)
        row_slice = None if rows is None else layout.place(rows)
        self._copy(layout)
        if rows is not None:
            self.copied += rows.numel() * rows.element_size()
        return self._filled(batch_slices, row_slice, layout)

    def gather(
        self, batch: MiniBatch, table: Tensor, load_into: Callable[[MiniBatch, Tensor], bool]
    ) -> BufferFilled:
        """Copy a batch into the buffer, which must be free, and have its rows written there.

        ``table``: the feature table ``[nodes, ...]``. ``load_into(batch, out)`` writes the rows of
        the input nodes to ``out``, and returns whether they were gathered there.
        """
        layout = BufferLayout()
        batch_slices = batch.mapped(layout.place)
        row_slice = layout.reserve(table.dtype, (batch.input_nodes.numel(), *table.shape[1:]))
        rows = row_slice.of(self._copy(layout))
        if not load_into(batch, rows):
            self.copied += rows.numel() * rows.element_size()
        return self._filled(batch_slices, row_slice, layout)

    def _copy(self, layout: BufferLayout) -> Tensor:
        """Copy the tensors of a layout into the buffer; returns its memory."""
        memory = self._reserve(layout.size)
        for tensor_slice, tensor in layout.slices:
            tensor_slice.of(memory).copy_(tensor)
        return memory

    def _filled(
        self, batch: MiniBatch[TensorSlice], rows: TensorSlice | None, layout: BufferLayout
    ) -> BufferFilled:
        """Return the message that the buffer is written."""
        assert self._memory is not None
        self.written += layout.size
        self.free = False
        event = self._mark() if self._device.type == "cuda" else None
        address = None if self._is_announced else self._memory.address
        self._is_announced = True
        return BufferFilled(self._number, batch, rows, address, self.size, layout.size, event)

    def done(self, message: BufferReleased) -> None:
        """Note that the consumer no longer uses the batch, nor memory that was replaced."""
        self.free = True
        if message.event is not None:
            self._read_event = torch.cuda.Event.from_ipc_handle(self._device, message.event)
        while self._replaced:
            self._replaced.pop().close()

    def _reserve(self, size: int) -> Tensor:
        """Return the buffer's memory, of at least ``size`` bytes."""
        if self._memory is not None and size <= self._memory.whole.numel():
            return self._memory.whole
        size = max(-(-(size + size // 4) // ALIGN) * ALIGN, LEAST_BYTES)
        on_host = self._device.type == "cpu"
        memory: Memory = HostMemory(size) if on_host else DeviceMemory(size, self._device)
        if self._memory is not None:
            self._replaced.append(self._memory)
        self._memory, self._is_announced = memory, False
        self.grown += 1
        return memory.whole

    def _mark(self) -> bytes | None:
        """Record the event behind the copies; returns its handle the first time."""
        is_first = self._written_event is None
        if self._written_event is None:
            self._written_event = torch.cuda.Event(interprocess=True)
        self._written_event.record(torch.cuda.current_stream(self._device))
        return self._written_event.ipc_handle() if is_first else None


class ConsumerBuffer:
    """The consumer's side of one buffer."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: Memory | None = None
        self._written_event: torch.cuda.Event | None = None
        self._read_event: torch.cuda.Event | None = None

    def open(self, message: BufferFilled) -> None:
        """Map the buffer's memory; on a GPU, order later work after its writing.

        Memory that the message replaces is closed.
        """
        if message.address is not None:
            self.close()
            self._memory = (
                OpenedHostMemory(message.address)
                if self._device.type == "cpu"
                else OpenedDeviceMemory(message.address, message.size, self._device)
            )
        if message.event is not None:
            self._written_event = torch.cuda.Event.from_ipc_handle(self._device, message.event)
        if self._written_event is not None:
            self._written_event.wait(torch.cuda.current_stream(self._device))

    def batch(self, message: BufferFilled) -> tuple[MiniBatch, Tensor]:
        """Return the batch and its rows as views of the buffer; ids are copies."""
        assert self._memory is not None and message.rows is not None
        memory = self._memory.whole
        batch = message.batch.mapped(lambda tensor_slice: tensor_slice.of(memory))
        copy_ids(batch)
        return batch, message.rows.of(memory)

    def done(self, buffer: int) -> BufferReleased:
        """Return the message that the batch is read when the work enqueued so far is done."""
        if self._device.type == "cpu":
            return BufferReleased(buffer)
        is_first = self._read_event is None
        if self._read_event is None:
            self._read_event = torch.cuda.Event(interprocess=True)
        self._read_event.record(torch.cuda.current_stream(self._device))
        return BufferReleased(buffer, self._read_event.ipc_handle() if is_first else None)

    def close(self) -> None:
        """Unmap the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None
