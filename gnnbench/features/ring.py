"""Buffers for feature rows that take turns, as many as results must stay valid at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.job import Job


class RowRing:
    """``job.held`` buffers, or ``buffers`` of them, for rows of the job's table on ``device``.

    A call gets the buffer that was handed out longest ago: what was written to it is valid until
    as many calls later as there are buffers. A buffer grows by a quarter beyond the largest batch
    that it has seen.
    """

    def __init__(self, job: Job, device: torch.device | str, buffers: int = 0) -> None:
        table = job.graph.features
        self._row, self._dtype, self._device = table.shape[1:], table.dtype, device
        self._buffers = [self._new(0) for _ in range(buffers or job.held)]
        self._turn = 0

    def _new(self, rows: int) -> Tensor:
        return torch.zeros((rows, *self._row), dtype=self._dtype, device=self._device)

    def reserve(self, rows: int) -> list[Tensor]:
        """All buffers, each with room for so many rows at least. They are what ``rows`` gives views
        of as long as nobody asks for more; what was never written is 0."""
        made = [b if b.shape[0] >= rows else self._new(rows) for b in self._buffers]
        if made and made[0].is_cuda:  # cleared before another stream writes there
            torch.cuda.current_stream(made[0].device).synchronize()
        self._buffers = made
        return list(made)

    def rows(self, n: int) -> Tensor:
        """Rows ``[n, feature_dim]`` to write to, a view of the next buffer."""
        turn, self._turn = self._turn, (self._turn + 1) % len(self._buffers)
        if n > self._buffers[turn].shape[0]:
            self._buffers[turn] = self._new(n + n // 4)
        return self._buffers[turn][:n]
