"""Measured peak for gathers: the same number of bytes in one contiguous copy, on the same path."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from gnnbench.core.counters import COPY_TIME
from gnnbench.core.job import Job
from gnnbench.kernels.features import gather
from gnnbench.kernels.missing import native_missing

PIECE_BYTES = 1 << 28  # at most what one copy moves: more is no faster
LINK, DEVICE = ("host_copy", "zero_copy"), ("device", "cache")


class CopyCeiling:
    """Copies of one cell; its buffers are kept from epoch to epoch, on a GPU those of the host."""

    def __init__(self, job: Job) -> None:
        self._table, self._device = job.graph.features, job.device
        self._row_bytes = self._table.shape[1] * self._table.element_size()
        self._here: Tensor | None = None  # rows of one piece on the host
        self._begin = 0  # of the next piece: no copy finds in a cache what the last one left there

    def counts(self, served: Mapping[str, int], batches: int) -> list[list[str | float]]:
        """Rows of (stage, measure, where, value): seconds of copying what an epoch served.

        ``served`` are an epoch's bytes of rows by where they were
        (``gnnbench.core.counters.WHERE``), copied batch by batch: rows of the host that a GPU needs
        over the link, out of locked memory; rows of a device on it; else from the table to a buffer
        by all cores, as torch copies and, with the native library, as our gather does consecutive
        rows, whichever took less. What was kept from an earlier batch is not copied.
        """
        rates: list[list[str | float]] = []
        for where, size in served.items():
            if size and (way := self._way(where)) is not None:
                rates.append(["features", COPY_TIME.name, where, way(size, batches)])
        return rates

    def _way(self, where: str) -> Callable[[int, int], float] | None:
        if self._device.type == "cpu":
            return self._on_host if where in ("host", *DEVICE) else None
        if where in LINK:
            return self._over_link
        return self._on_device if where in DEVICE else None

    def _pieces(self, size: int, batches: int) -> list[int]:
        """Rows of each piece."""
        rows, most = size // self._row_bytes, max(PIECE_BYTES // self._row_bytes, 1)
        most = min(most, -(-rows // max(batches, 1)), self._table.shape[0])
        return [min(most, rows - first) for first in range(0, rows, most)]

    def _buffer(self, rows: int) -> Tensor:
        """Room for rows on the host, locked where a GPU is to read it, every page touched."""
        if self._here is None or self._here.shape[0] < rows:
            shape = (rows, self._table.shape[1])
            locked = self._device.type == "cuda"
            self._here = torch.empty(shape, dtype=self._table.dtype, pin_memory=locked).zero_()
        return self._here

    def _on_host(self, size: int, batches: int) -> float:
        pieces = self._pieces(size, batches)
        out = self._buffer(max(pieces))
        ways = [self._copied] if native_missing() else [self._copied, self._gathered]
        return min(sum(way(self._next(rows), out[:rows]) for rows in pieces) for way in ways)

    def _next(self, rows: int) -> int:
        """First row of the next piece of the table."""
        begin = self._begin if self._begin + rows <= self._table.shape[0] else 0
        self._begin = begin + rows
        return begin

    def _copied(self, begin: int, out: Tensor) -> float:
        start = time.perf_counter()
        out.copy_(self._table[begin : begin + out.shape[0]])
        return time.perf_counter() - start

    def _gathered(self, begin: int, out: Tensor) -> float:
        ids = torch.arange(begin, begin + out.shape[0])
        start = time.perf_counter()
        gather(self._table, ids, out=out)
        return time.perf_counter() - start

    def _over_link(self, size: int, batches: int) -> float:
        pieces = self._pieces(size, batches)
        return self._timed(self._buffer(max(pieces)), pieces)

    def _on_device(self, size: int, batches: int) -> float:
        pieces = self._pieces(size, batches)
        return self._timed(self._there(max(pieces)), pieces)

    def _there(self, rows: int) -> Tensor:
        shape = (rows, self._table.shape[1])
        return torch.zeros(shape, dtype=self._table.dtype, device=self._device)

    def _timed(self, source: Tensor, pieces: list[int]) -> float:
        """Seconds between events around copies of ``source`` to the device, one piece before."""
        target = self._there(max(pieces))
        first, last = self._events
        target.copy_(source[: target.shape[0]], non_blocking=True)
        first.record()
        for rows in pieces:
            target[:rows].copy_(source[:rows], non_blocking=True)
        last.record()
        last.synchronize()
        return first.elapsed_time(last) / 1e3

    @cached_property
    def _events(self) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        return first, last
