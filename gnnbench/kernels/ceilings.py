"""Kernels that measure the peak rates of a machine; their results prove that the work was done."""

from __future__ import annotations

from torch import Tensor

from gnnbench.kernels.library import native_operators

MOST_STEPS = 1 << 23  # of a chain: float32 counts exactly so far
LINE = 64  # bytes: words are whole lines and begin at one


def copy(source: Tensor, target: Tensor) -> None:
    """Copy words int32 past the caches; both of a size, whole lines of 64 bytes.

    Raises ``UsageError`` for a wrong argument, as all here do.
    """
    with native_operators() as ops:
        ops.ceiling_copy(source, target)


def read(words: Tensor, passes: int = 1) -> Tensor:
    """Sum modulo 2^32, int64 ``[1]``, of words int32 read ``passes`` times, whole lines.

    On a CPU each thread reads a share of its own over and over; on a GPU every pass is of all words
    and past the first cache. All passes together read at most 1 TiB, of larger words one pass.
    """
    with native_operators() as ops:
        return ops.ceiling_read(words, passes)


def rows(words: Tensor, ids: Tensor) -> Tensor:
    """Sum modulo 2^32, int64 ``[1]``, of rows ``ids`` int64 ``[n]`` of a table int32 ``[m, w]``.

    An id that is no row raises ``UsageError``, on a GPU it fails a device assert.
    """
    with native_operators() as ops:
        return ops.ceiling_rows(words, ids)


def fma(like: Tensor, steps: int) -> Tensor:
    """How many float32 multiply-adds were done, int64 ``[1]``: chains of ``steps`` (1 to 2^23) in
    every lane of all threads of the device of ``like``."""
    with native_operators() as ops:
        return ops.ceiling_fma(like, steps)


def shared(like: Tensor, steps: int) -> Tensor:
    """How many bytes of a GPU's shared memory were read, int64 ``[1]``; CUDA only."""
    with native_operators() as ops:
        return ops.ceiling_shared(like, steps)


def mark(like: Tensor) -> None:
    """A kernel that only has a name, ``ceiling_mark_kernel``, among those of a GPU."""
    with native_operators() as ops:
        ops.ceiling_mark(like)
