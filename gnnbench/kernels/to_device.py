"""A large tensor of the host onto a GPU: by all cores into locked memory, and on by its engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

PIECE_BYTES = 32 << 20
PIECES = 4
WORTH_IT = 256 << 20  # bytes; below, locking the buffers takes longer than it saves


class Copied(Protocol):
    """The end of a copy, as of ``torch.cuda.Event``."""

    def synchronize(self) -> None:
        """Wait for it."""


Copy = Callable[[Tensor, Tensor], Copied]  # (from a buffer, to the device): enqueued in order


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """``tensor.to(device)``, done when it returns; of a mapped file several times as fast.

    The driver reads memory that is not locked by one core, page fault by page fault. Raises
    ``torch.OutOfMemoryError`` where the device has no room.
    """
    plain = device.type != "cuda" or tensor.is_cuda or tensor.nbytes < WORTH_IT
    if plain or not tensor.is_contiguous() or tensor.is_pinned():
        return tensor.to(device)
    found = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
    room = PIECE_BYTES // tensor.element_size()
    buffers = [torch.empty(room, dtype=tensor.dtype, pin_memory=True) for _ in range(PIECES)]
    stream = torch.cuda.current_stream(device)

    def copy(piece: Tensor, there: Tensor) -> Copied:
        there.copy_(piece, non_blocking=True)
        done = torch.cuda.Event()
        done.record(stream)
        return done

    send(tensor.view(-1), found.view(-1), buffers, copy)
    return found


def send(here: Tensor, there: Tensor, buffers: Sequence[Tensor], copy: Copy) -> None:
    """Copy a tensor of one dimension through ``buffers``, in turn; done when it returns.

    A buffer is written again only when its own copy is done.
    """
    under_way: list[Copied | None] = [None] * len(buffers)
    pieces = zip(here.split(len(buffers[0])), there.split(len(buffers[0])), strict=True)
    for number, (piece, place) in enumerate(pieces):
        turn = number % len(buffers)
        if (before := under_way[turn]) is not None:
            before.synchronize()
        filled = buffers[turn][: piece.numel()]
        filled.copy_(piece)
        under_way[turn] = copy(filled, place)
    for last in under_way:
        if last is not None:
            last.synchronize()
