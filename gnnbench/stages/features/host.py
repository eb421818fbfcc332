"""Gather on the host by all cores; for a GPU into locked memory, then one copy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gnnbench.ops.features import gather
from gnnbench.stages.features.base import RowStore
from gnnbench.stages.features.ring import RowRing
from gnnbench.stages.job import Job


class HostGather(RowStore):
    """Gather into buffers that take turns; the rows returned are a view of one."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._table = job.graph.features
        self._ring = RowRing(job, self._table.device)

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        n = ids.numel()
        self.count(n, "host")
        return gather(self._table, ids, out=self._ring.rows(n))


class StagedGather(RowStore):
    """Host gather into locked memory, then one asynchronous copy to the device.

    Two staging buffers take turns, so that gathering the next batch does not wait for the copy of
    the last one; a buffer is written again only when its own copy is done. Buffers grow by a
    quarter beyond the largest batch seen. The ids come from the device: reading them waits for the
    sampler, nothing else waits. Raises ``torch.OutOfMemoryError`` where the device is full.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._table = job.graph.features
        self._device = job.device
        self._rows = [self._locked((0, self._table.shape[1]), self._table.dtype) for _ in range(2)]
        self._copied: list[Any] = [None, None]
        self._ids: Tensor | None = None
        self._turn = 0

    @staticmethod
    def _locked(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    def _to_host(self, ids: Tensor) -> Tensor:
        if not ids.is_cuda:
            return ids
        n = ids.numel()
        if self._ids is None or self._ids.numel() < n or self._ids.dtype != ids.dtype:
            self._ids = self._locked((n + n // 4,), ids.dtype)
        here = self._ids[:n].copy_(ids, non_blocking=True)
        torch.cuda.current_stream(self._device).synchronize()
        return here

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        here = self._to_host(ids)
        n = here.numel()
        turn, self._turn = self._turn, 1 - self._turn
        if self._copied[turn] is not None:
            self._copied[turn].synchronize()
        if n > self._rows[turn].shape[0]:
            self._rows[turn] = self._locked((n + n // 4, self._table.shape[1]), self._table.dtype)
        self.count(n, "host_copy")
        rows = gather(self._table, here, out=self._rows[turn][:n])
        there = rows.to(self._device, non_blocking=True)
        self._copied[turn] = torch.cuda.Event()
        self._copied[turn].record(torch.cuda.current_stream(self._device))
        return there

    def close(self) -> None:
        """Free the staging buffers."""
        self._rows, self._copied, self._ids = [], [], None
