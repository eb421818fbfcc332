"""A ring of buffers for feature rows, one for each result that must stay valid."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.job import Job


class RowRing:
    """``buffers`` buffers (0: ``job.max_in_flight``) for rows of the job's table on ``device``.

    A call gets the least recently used buffer. With n buffers, the n-th following call overwrites a
    result. A buffer grows to a quarter more than its largest batch.
    """

    def __init__(self, job: Job, device: torch.device | str, buffers: int = 0) -> None:
        table = job.graph.features
        self._row, self._dtype, self._device = table.shape[1:], table.dtype, device
        self._buffers = [self._new(0) for _ in range(buffers or job.max_in_flight)]
        self._turn = 0

    def _new(self, rows: int) -> Tensor:
        return torch.zeros((rows, *self._row), dtype=self._dtype, device=self._device)

    def reserve(self, rows: int) -> list[Tensor]:
        """Grow all buffers to at least ``rows`` rows and return them; new memory is 0.

        ``rows`` returns views of them as long as no call needs more.
        """
        buffers = [b if b.shape[0] >= rows else self._new(rows) for b in self._buffers]
        if buffers and buffers[0].is_cuda:  # zeroed before another stream writes there
            torch.cuda.current_stream(buffers[0].device).synchronize()
        self._buffers = buffers
        return list(buffers)

    def rows(self, n: int) -> Tensor:
        """Return a view ``[n, feature_dim]`` of the next buffer."""
        turn, self._turn = self._turn, (self._turn + 1) % len(self._buffers)
        if n > self._buffers[turn].shape[0]:
            self._buffers[turn] = self._new(n + n // 4)
        return self._buffers[turn][:n]
