"""The most of a GPU's memory that the stages of a process have held, whoever looked meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    import torch


class Peak:
    """By torch's allocator, without what is taken ``apart``; 0 where there is no GPU to look at."""

    def __init__(self) -> None:
        self._device: torch.device | None = None
        self._kept = 0  # before the last that was taken apart
        self._apart = 0  # how deep in such work

    def begin(self, device: torch.device) -> None:
        """Count from here on, where ``device`` is a GPU."""
        if device.type == "cuda":
            import torch

            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats(device)
            self._device, self._kept = device, 0

    @property
    def most(self) -> int:
        """Bytes; within what is taken apart those of before it."""
        if self._device is None or self._apart:
            return self._kept
        import torch

        return max(self._kept, int(torch.cuda.max_memory_allocated(self._device)))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is taken within, and given back, is none of the stages'."""
        self._kept = self.most
        self._apart += 1
        try:
            yield
        finally:
            self._apart -= 1
            if self._device is not None and not self._apart:
                import torch

                torch.cuda.reset_peak_memory_stats(self._device)
