"""Large pieces of memory that a store takes at once: where one is not there, a sentence says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gnnbench.core.errors import GpuMemoryError, HostMemoryError

GIB = 1 << 30


@contextmanager
def taking(what: str, size: int, instead: str) -> Iterator[None]:
    """Allocate ``what``, of ``size`` bytes, on whichever device.

    Raises ``GpuMemoryError`` or ``HostMemoryError`` where it is not to be had; ``instead`` is what
    the user may do.
    """
    words = f"{what} takes {size / GIB:.3g} GiB, more than"
    try:
        yield
    except torch.OutOfMemoryError:
        raise GpuMemoryError(f"{words} the GPU has free; {instead}") from None
    except RuntimeError as error:  # the CPU's allocator has no type of its own
        if "allocate memory" not in str(error):
            raise
        raise HostMemoryError(f"{words} the host has free; {instead}") from None
