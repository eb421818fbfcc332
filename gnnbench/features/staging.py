"""Rows from the host to a device in chunks: one is gathered while those before it are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.kernels.features import gather

CHUNK_BYTES = 8 << 20  # 0.15 ms of a link of 55 GB/s, several times what it costs to enqueue
CHUNKS = 4


class Copied(Protocol):
    """The end of a copy, as of ``torch.cuda.Event``."""

    def synchronize(self) -> None:
        """Wait for it."""


# Enqueues the copy of a chunk's rows to their place on the device; copies end in their order.
Copy = Callable[[Tensor, Tensor], Copied]


class StagedChunks:
    """A ring of buffers that the copy reads out of; a buffer is written again only when its own
    copy is done.

    Takes the larger of gathering and copying, and a chunk's gathering more. ``allocate`` gives a
    buffer of so many rows, in locked memory where the copy is to be asynchronous.
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
        self._room = max(chunk_bytes // row_bytes, 1)
        self._buffers = [allocate(self._room) for _ in range(chunks)]
        self._copied: list[Copied | None] = [None] * chunks
        self._turn = 0

    def send(self, ids: Tensor, out: Tensor) -> None:
        """Enqueue the copies of the rows of ``ids``, which are on the host, to ``out``.

        Raises ``UsageError`` for an id that is not a row.
        """
        n = ids.numel()
        copies = -(-n // self._room)
        for k in range(copies):
            begin, end = n * k // copies, n * (k + 1) // copies
            turn, self._turn = self._turn, (self._turn + 1) % len(self._buffers)
            if (before := self._copied[turn]) is not None:
                before.synchronize()
            rows = gather(self._table, ids[begin:end], out=self._buffers[turn][: end - begin])
            self._copied[turn] = self._copy(rows, out[begin:end])


def copy_on(device: torch.device) -> Copy:
    """Copies on the device's current stream."""

    def copy(rows: Tensor, there: Tensor) -> Copied:
        there.copy_(rows, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(device))
        return done

    return copy
