"""Feature stage: global ids to feature rows on the compute device."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from gnnbench.ops.features import gather, gather_zero_copy
from gnnbench.stages.locked import LockedCopy


class FeatureStore(Protocol):
    """Serves feature rows.

    ``path`` is the name under which ``feature_bytes`` counts them; ``over_link`` tells whether they
    cross from the host to the device.
    """

    path: str
    over_link: bool

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids``, bit-equal to the feature table."""
        ...

    def close(self) -> None:
        """Give back what the store took."""


class HostGather:
    """Gather by all cores into a staging buffer that is reused from batch to batch.

    The buffer grows by a quarter beyond the largest batch seen. The rows returned are a view of
    it: they are valid until the next ``load``.
    """

    path = "host_copy"
    over_link = False

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._staging = torch.empty((0, table.shape[1]), dtype=table.dtype)

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` ``[n, feature_dim]``."""
        n = ids.numel()
        if n > self._staging.shape[0]:
            self._staging = torch.empty((n + n // 4, self._table.shape[1]), dtype=self._table.dtype)
        rows = self._staging[:n]
        return gather(self._table, ids, out=rows)

    def close(self) -> None:
        """Nothing to give back."""


class StagedGather:
    """Host gather into pinned memory, then one asynchronous copy to the device (DGL's method).

    Two staging buffers take turns, so that gathering the next batch does not wait for the copy of
    the last one; a buffer is written again only when its own copy is done. Buffers grow by a
    quarter beyond the largest batch seen. ``ids`` come from the device: reading them waits for the
    sampler, nothing else waits. Raises ``torch.OutOfMemoryError`` where the device is full.
    """

    path = "host_copy"
    over_link = True

    def __init__(self, table: Tensor, device: torch.device | str) -> None:
        self._table = table
        self._device = torch.device(device)
        self._rows = [self._pinned((0, table.shape[1]), table.dtype) for _ in range(2)]
        self._copied: list[Any] = [None, None]
        self._ids: Tensor | None = None
        self._turn = 0

    @staticmethod
    def _pinned(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    def _to_host(self, ids: Tensor) -> Tensor:
        if not ids.is_cuda:
            return ids
        n = ids.numel()
        if self._ids is None or self._ids.numel() < n or self._ids.dtype != ids.dtype:
            self._ids = self._pinned((n + n // 4,), ids.dtype)
        here = self._ids[:n].copy_(ids, non_blocking=True)
        torch.cuda.current_stream(self._device).synchronize()
        return here

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` ``[n, feature_dim]``, on the device."""
        here = self._to_host(ids)
        n = here.numel()
        turn, self._turn = self._turn, 1 - self._turn
        if self._copied[turn] is not None:
            self._copied[turn].synchronize()
        if n > self._rows[turn].shape[0]:
            self._rows[turn] = self._pinned((n + n // 4, self._table.shape[1]), self._table.dtype)
        rows = gather(self._table, here, out=self._rows[turn][:n])
        there = rows.to(self._device, non_blocking=True)
        self._copied[turn] = torch.cuda.Event()
        self._copied[turn].record(torch.cuda.current_stream(self._device))
        return there

    def close(self) -> None:
        """Free the staging buffers."""
        self._rows, self._copied, self._ids = [], [], None


class DeviceGather:
    """The whole table in device memory. Raises ``torch.OutOfMemoryError`` where it does not fit."""

    path = "cache"
    over_link = False

    def __init__(self, table: Tensor, device: torch.device | str) -> None:
        self._table: Tensor | None = table.to(device)

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` ``[n, feature_dim]``, on the device."""
        assert self._table is not None
        return gather(self._table, ids)

    def close(self) -> None:
        """Free the table."""
        self._table = None


class ZeroCopyGather:
    """A kernel on the device reads the rows out of host memory (DGL's gather by unified addresses).

    The table is copied once into memory that is then locked. Raises ``MemoryError`` where the
    host's memory cannot be locked.
    """

    path = "zero_copy"
    over_link = True

    def __init__(self, table: Tensor, device: torch.device | str) -> None:
        self._table = LockedCopy(table, device, "features")

    def load(self, ids: Tensor) -> Tensor:
        """Rows of ``ids`` ``[n, feature_dim]``, on the device."""
        return gather_zero_copy(self._table.tensor, ids)

    def close(self) -> None:
        """Unlock and free the table."""
        self._table.close()
