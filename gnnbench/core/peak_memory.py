"""Peak GPU memory of a process's stages, without memory of checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    import torch


class Peak:
    """Peak of torch's allocator, without allocations inside ``apart``; 0 without a GPU."""

    def __init__(self) -> None:
        self._device: torch.device | None = None
        self._kept = 0  # peak before the current ``apart`` block
        self._apart = 0  # nesting depth of ``apart``

    def begin(self, device: torch.device) -> None:
        """Start counting if ``device`` is a GPU."""
        if device.type == "cuda":
            import torch

            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats(device)
            self._device, self._kept = device, 0

    @property
    def most(self) -> int:
        """Peak in bytes; inside ``apart`` the peak before it."""
        if self._device is None or self._apart:
            return self._kept
        import torch

        return max(self._kept, int(torch.cuda.max_memory_allocated(self._device)))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Exclude allocations of the block from the peak."""
        self._kept = self.most
        self._apart += 1
        try:
            yield
        finally:
            self._apart -= 1
            if self._device is not None and not self._apart:
                import torch

                torch.cuda.reset_peak_memory_stats(self._device)
