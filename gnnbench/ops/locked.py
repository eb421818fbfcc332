"""Host memory that is locked, so that a kernel on a GPU can read it where it is."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor


class LockedCopy:
    """A copy of a CPU tensor, registered with the driver (a mapped file cannot be).

    ``tensor`` is the copy; a GPU reads it by the same address. Torch's own pinned memory comes in
    powers of two, up to twice as much as is needed: too much for a table or a graph. Unlocked by
    ``close``, or when nothing refers to the object. ``what`` names the contents in the error.
    Raises ``MemoryError`` where the host's memory cannot be locked.
    """

    def __init__(self, source: Tensor, device: torch.device | str, what: str) -> None:
        copy = torch.empty_like(source, memory_format=torch.contiguous_format).copy_(source)
        self._tensor: Tensor | None = copy
        size = copy.numel() * copy.element_size()
        if size == 0:
            return
        with torch.cuda.device(torch.device(device)):
            reader = torch.cuda.current_device()
            code = int(torch.cuda.cudart().cudaHostRegister(copy.data_ptr(), size, 0))
        if code != 0:
            self._tensor = None
            raise MemoryError(
                f"cannot allocate memory: {size} bytes of {what} cannot be locked (CUDA error"
                f" {code})"
            )
        self._unlock = weakref.finalize(self, _unlock, copy, reader)
        self._unlock.atexit = False  # the process gives its memory back anyhow

    @property
    def tensor(self) -> Tensor:
        """The copy; not to be used after ``close``."""
        assert self._tensor is not None
        return self._tensor

    def close(self) -> None:
        """Unlock and free the memory once the device has done its work."""
        self._tensor = None
        if hasattr(self, "_unlock"):
            self._unlock()


def _unlock(copy: Tensor, reader: int) -> None:
    torch.cuda.synchronize(reader)
    torch.cuda.cudart().cudaHostUnregister(copy.data_ptr())
