"""Gather on the host by all cores; for a GPU through pinned memory."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.core.job import Job
from gnnbench.features.base import TableStore
from gnnbench.features.ring import RowRing
from gnnbench.features.staging import StagedChunks, copy_on
from gnnbench.kernels.features import gather


class HostGather(TableStore):
    """Gather into a ring of buffers; the returned rows are a view of one."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._table = job.graph.features
        self._ring = RowRing(job, self._table.device)

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        n = ids.numel()
        self.count(n, "host")
        return gather(self._table, ids, out=self._ring.rows(n))

    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Gather directly into ``out``."""
        gather(self._table, ids, out=out)

    def copy_all(self, out: Tensor) -> None:
        """Copy the table by all cores."""
        out.copy_(self._table)

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers."""
        return self._ring.reserve(rows)


class StagedGather(TableStore):
    """Host gather into pinned memory and asynchronous copies to the device, chunk by chunk.

    Gathering a chunk overlaps the copies of earlier chunks and batches (``StagedChunks``). Only
    reading the ids from the device waits for the sampler. Raises ``HostMemoryError`` if host memory
    cannot be locked, and ``torch.OutOfMemoryError`` if the device is full.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._table = job.graph.features
        self._device = job.device
        self._chunks: StagedChunks | None = StagedChunks(
            self._table,
            lambda rows: self._locked((rows, self._table.shape[1]), self._table.dtype),
            copy_on(self._device),
        )
        self._ids: Tensor | None = None

    @staticmethod
    def _locked(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        try:
            return torch.empty(shape, dtype=dtype, pin_memory=True)
        except RuntimeError as error:  # torch reports it as a GPU error
            size = torch.Size(shape).numel() * dtype.itemsize
            raise HostMemoryError(
                f"{size} bytes for staging cannot be locked for the GPU; free memory, raise the"
                " limit of locked memory (ulimit -l), or take smaller batches"
            ) from error

    def _to_host(self, ids: Tensor) -> Tensor:
        if not ids.is_cuda:
            return ids
        n = ids.numel()
        if self._ids is None or self._ids.numel() < n or self._ids.dtype != ids.dtype:
            self._ids = self._locked((n + n // 4,), ids.dtype)
        host_ids = self._ids[:n].copy_(ids, non_blocking=True)
        torch.cuda.current_stream(self._device).synchronize()
        return host_ids

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        assert self._chunks is not None
        host_ids = self._to_host(ids)
        shape = (host_ids.numel(), self._table.shape[1])
        rows = torch.empty(shape, dtype=self._table.dtype, device=self._device)
        self.count(host_ids.numel(), "host_copy")
        self._chunks.send(host_ids, rows)
        return rows

    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Copy rows as batches are copied."""
        assert self._chunks is not None
        self._chunks.send(ids.cpu(), out)

    def copy_all(self, out: Tensor) -> None:
        """Copy the table chunk by chunk."""
        self.copy_rows(torch.arange(out.shape[0]), out)

    def close(self) -> None:
        """Free the staging buffers."""
        self._chunks, self._ids = None, None
