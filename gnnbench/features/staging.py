"""Chunked copies to a device: a chunk is gathered while earlier chunks are copied."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gnnbench.kernels.access import READERS
from gnnbench.kernels.features import gather, gather_to
from gnnbench.kernels.to_device import Copy, CopyEvent

CHUNK_BYTES = 8 << 20  # 0.15 ms at 55 GB/s, several times the cost of enqueueing
CHUNKS = 4
PLACING = 4 * READERS  # blocks of 256 threads that read a chunk from host memory


class StagedChunks:
    """A ring of staging buffers; a buffer is overwritten only after its copy is complete.

    The total time is the larger of gathering and copying, plus the gathering of one chunk.
    ``allocate`` returns a buffer of a number of rows, pinned if copies are asynchronous.
    """

    def __init__(
        self,
        table: Tensor,
        allocate: Callable[[int], Tensor],
        copy: Copy,
        chunk_bytes: int = CHUNK_BYTES,
        chunks: int = CHUNKS,
    ) -> None:
        self._table, self._copy = table, copy
        row_bytes = max(table[:1].numel() * table.element_size(), 1)
        self.chunk_rows = max(chunk_bytes // row_bytes, 1)
        self._buffers = [allocate(self.chunk_rows) for _ in range(chunks)]
        self._copies: list[CopyEvent | None] = [None] * chunks
        self._next_slot = 0

    def send(self, ids: Tensor, out: Tensor, copy: Copy | None = None) -> None:
        """Enqueue copies of the rows of ``ids`` (on the host) to ``out``.

        ``copy`` takes the place of the ring's; ``out`` is what it gets by chunks. Raises
        ``UsageError`` for an id that is not a row.
        """
        copy = copy or self._copy
        n = ids.numel()
        copies = -(-n // self.chunk_rows)
        for k in range(copies):
            begin, end = n * k // copies, n * (k + 1) // copies
            slot, self._next_slot = self._next_slot, (self._next_slot + 1) % len(self._buffers)
            if (last_copy := self._copies[slot]) is not None:
                last_copy.synchronize()
            rows = gather(self._table, ids[begin:end], out=self._buffers[slot][: end - begin])
            self._copies[slot] = copy(rows, out[begin:end])


def copy_on(device: torch.device) -> Copy:
    """Return a function that copies on the device's current stream."""

    def copy(rows: Tensor, out: Tensor) -> CopyEvent:
        out.copy_(rows, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(device))
        return done

    return copy


def place_on(device: torch.device, numbers: Tensor, out: Tensor) -> Copy:
    """Return a function by which a kernel reads a chunk and writes its rows to places in ``out``.

    It takes the places, int32 ``[rows]`` on the device, in place of a chunk's result. ``numbers``
    are 0, 1, ... int32 there, as many as a chunk has rows.
    """

    def place(rows: Tensor, places: Tensor) -> CopyEvent:
        gather_to(rows, numbers[: rows.shape[0]], places, out, PLACING)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(device))
        return done

    return place
