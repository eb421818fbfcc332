"""Clear errors for large allocations that fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gnnbench.core.errors import GpuMemoryError, HostMemoryError

GIB = 1 << 30


@contextmanager
def allocating(name: str, size: int, remedy: str) -> Iterator[None]:
    """Context of an allocation of ``size`` bytes for ``name``, on any device.

    Raises ``GpuMemoryError`` or ``HostMemoryError`` if it fails; the message ends with ``remedy``.
    """
    problem = f"{name} takes {size / GIB:.3g} GiB, more than"
    try:
        yield
    except torch.OutOfMemoryError:
        raise GpuMemoryError(f"{problem} the GPU has free; {remedy}") from None
    except RuntimeError as error:  # torch's CPU allocator has no error type of its own
        if "allocate memory" not in str(error):
            raise
        raise HostMemoryError(f"{problem} the host has free; {remedy}") from None
