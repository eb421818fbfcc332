"""Gather on the host by all cores; for a GPU through pinned memory."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.base import TableStore
from gnnbench.features.ring import RowRing
from gnnbench.features.staging import StagedChunks, copy_on, place_on
from gnnbench.kernels.features import gather, gather_to


class HostGather(TableStore):
    """Gather into a ring of buffers; the returned rows are a view of one."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._table = job.graph.features
        self._ring = RowRing(job, self._table.device)

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``."""
        return self._gather(ids, self._ring.rows(ids.numel()))

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Gather into ``out``."""
        self._gather(batch.input_nodes, out)
        return True

    def _gather(self, ids: Tensor, out: Tensor) -> Tensor:
        self.count(ids.numel(), "host")
        return gather(self._table, ids, out=out)

    def fetch_to(self, ids: Tensor, places: Tensor, out: Tensor) -> None:
        """Gather directly into ``out``."""
        self.count(ids.numel(), "host")
        gather_to(self._table, ids, places, out)

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
        self._numbers: Tensor | None = None  # of a chunk's rows, on the device

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

    def to_host(self, ids: Tensor) -> Tensor:
        """Return ids in host memory, which the next call overwrites; waits for those of a GPU."""
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
        shape = (ids.numel(), self._table.shape[1])
        rows = torch.empty(shape, dtype=self._table.dtype, device=self._device)
        self._send(ids, rows)
        return rows

    def load_into(self, batch: Batch, out: Tensor) -> bool:
        """Copy from pinned memory to ``out``."""
        self._send(batch.input_nodes, out)
        return True

    def _send(self, ids: Tensor, out: Tensor) -> None:
        assert self._chunks is not None
        self.count(ids.numel(), "host_copy")
        self._chunks.send(self.to_host(ids), out)

    def fetch_to(self, ids: Tensor, places: Tensor, out: Tensor) -> None:
        """Have the device read the chunks, and write each row once."""
        assert self._chunks is not None
        self.count(ids.numel(), "host_copy")
        if self._numbers is None:
            rows = self._chunks.chunk_rows
            self._numbers = torch.arange(rows, dtype=torch.int32, device=self._device)
        self._chunks.send(self.to_host(ids), places, place_on(self._device, self._numbers, out))

    def copy_rows(self, ids: Tensor, out: Tensor) -> None:
        """Copy rows as batches are copied."""
        assert self._chunks is not None
        self._chunks.send(ids.cpu(), out)

    def copy_all(self, out: Tensor) -> None:
        """Copy the table chunk by chunk."""
        self.copy_rows(torch.arange(out.shape[0]), out)

    def close(self) -> None:
        """Free the staging buffers."""
        self._chunks = self._ids = self._numbers = None
