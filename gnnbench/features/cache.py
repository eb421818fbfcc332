"""A feature cache on the device with a fallback for misses.

On a CPU the cache is a second table in memory: its counts are valid, its times are not a GPU's.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from gnnbench.core.counters import (
    CACHE_RATIO,
    CACHE_ROWS,
    FILL_TIME,
    HOTNESS_TIME,
    PEAK_TIME,
    PEAK_WITHOUT,
    RANK_TIME,
    Metric,
)
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.allocation import GIB, allocating
from gnnbench.features.base import CachePoint, FallbackStore, RowStore, TableStore
from gnnbench.features.host import HostGather, StagedGather
from gnnbench.features.marks import Marks, marks_of, split
from gnnbench.features.policies.policy import (
    OPTIMAL,
    PRESAMPLED,
    SIEVE,
    Footprint,
    Policy,
    cached_rows,
)
from gnnbench.features.policies.size import AUTO, MARGIN_BYTES, fitting_rows
from gnnbench.features.policies.trace import RATIOS, Trace
from gnnbench.features.ranking import ranked_for, settle_memory
from gnnbench.features.ring import RowRing
from gnnbench.features.single_pass import (
    HostSinglePassGather,
    SinglePassGather,
    page_gather,
    single_pass_gather,
)
from gnnbench.kernels.features import gather, gather_to
from gnnbench.kernels.lookup import IdLookup

CURVE = tuple(percent / 100 for percent in range(101))


class CacheStore(FallbackStore, RowStore):
    """Rows from the cache, misses from the ``fallback``.

    ``ratio`` is a share of all nodes, or ``auto``: what fits into the device memory that batches
    without the cache leave free, and into ``limit`` bytes (0: no limit). Raises
    ``UnsupportedError`` for a cache above the limit, and ``GpuMemoryError`` or ``HostMemoryError``
    for one that does not fit.
    """

    def __init__(self, job: Job, ratio: float | str, limit: int, fallback: RowStore) -> None:
        super().__init__(job, fallback)
        self._table, self._limit = job.graph.features, limit
        self._auto = ratio == AUTO
        nodes = job.graph.num_nodes
        self._rows = 0 if isinstance(ratio, str) else cached_rows(ratio, nodes)
        self._check_limit()
        self._cache = self._allocate(0)  # empty until ``prepare``: ranking nodes takes memory, too
        self._lookup = IdLookup(nodes, job.device)
        self._ring = RowRing(job, job.device)

    def _check_limit(self) -> None:
        size = self._rows * self._row_bytes
        if self._limit and size > self._limit:
            raise UnsupportedError(
                f"{self._description(self._rows)} takes {size / GIB:.3g} GiB, more than"
                f" memory_gib={self._limit / GIB:.3g}; give a smaller ratio, or ratio={AUTO}"
            )

    def _description(self, rows: int) -> str:
        return f"a feature cache of ratio {rows / self.job.graph.num_nodes:.3g}"

    def _allocate(self, rows: int) -> Tensor:
        size = rows * self._row_bytes
        with allocating(self._description(rows), size, f"give a smaller ratio, or ratio={AUTO}"):
            return self._table.new_empty((rows, *self._table.shape[1:]), device=self.job.device)

    def _allocate_cache(self) -> None:
        """Allocate the cache's memory, in one block."""
        if self._cache.shape[0] != self._rows:
            if self.job.device.type == "cuda":
                torch.cuda.empty_cache()
            self._cache = self._allocate(self._rows)

    def fit(self, peak: Callable[[], int]) -> dict[Metric, float]:
        """Derive the number of rows if the ratio is ``auto``."""
        if not self._auto:
            return {}
        nodes, device = self.job.graph.num_nodes, self.job.device
        limit = self._limit or None
        measures: dict[Metric, float] = {}
        available, peak_bytes = None, 0
        if device.type == "cuda":
            begin = time.perf_counter()
            peak_bytes = peak()
            # Memory that torch has reserved is available to the process as well.
            available = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
            measures = {PEAK_WITHOUT: peak_bytes, PEAK_TIME: time.perf_counter() - begin}
        self._rows = fitting_rows(nodes, self._row_bytes, available, peak_bytes, limit)
        return {**measures, CACHE_RATIO: self._rows / nodes}

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device.

        The simple, slow path: the split synchronizes, and each row is written twice, because a
        dynamic cache keeps the missed rows.
        """
        ids = ids.to(self._cache.device)  # another framework's sampler may return them on the host
        return self._fetch_marked(split(ids, self._lookup))

    def _fetch_marked(self, marks: Marks) -> Tensor:
        """Rows of ids that were looked up."""
        rows = self._ring.rows(marks.slots.numel() + marks.missed.numel())
        self.count(marks.slots.numel(), "cache")
        rows.index_copy_(0, marks.slots_at.long(), gather(self._cache, marks.slots))
        fetched = self._fallback.fetch(marks.missed)
        rows.index_copy_(0, marks.missed_at.long(), fetched)
        self.update(marks.slots, marks.missed, fetched)
        return rows

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers."""
        return self._ring.reserve(rows)

    @abstractmethod
    def update(self, hit_slots: Tensor, missed: Tensor, rows: Tensor) -> None:
        """Update the cache after a batch.

        ``hit_slots`` int32 ``[hits]``; ``missed`` ids ``[n]`` and their ``rows``
        ``[n, feature_dim]``.
        """

    def curves(self, footprint: Footprint, epoch: int) -> list[CachePoint]:
        """Exact hits of SIEVE at every tenth, in a cache warmed by another epoch."""
        nodes = self.job.graph.num_nodes
        before, trace = (Trace.record(nodes, footprint(e)) for e in (PRESAMPLED, epoch))
        return self._points(SIEVE, RATIOS, trace, trace.sieve_hits(RATIOS, before))

    @staticmethod
    def _points(
        policy: str, ratios: Sequence[float], trace: Trace, hits: Sequence[int]
    ) -> list[CachePoint]:
        pairs = zip(ratios, hits, strict=True)
        return [CachePoint(policy, ratio, n, trace.requests - n) for ratio, n in pairs]

    def close(self) -> None:
        """Free the cache and the fallback."""
        super().close()
        del self._cache, self._lookup, self._ring


class StaticCache(CacheStore):
    """The rows of the policy's first nodes (GNNLab, EuroSys 2022; PaGraph, SoCC 2020).

    An oracle is empty until ``foresee``. If a GPU reads the table by pages, kernels gather in a
    single pass (``SinglePassGather``); ``page_gather`` is then the fallback, else None. So do the
    cores for a CPU (``HostSinglePassGather``). For a GPU the cores gather only missing rows, and
    each row is written once there, after one wait for the missed ids.
    ``takes_marks``: batches may come with marks of the first nodes of this cache, and are then not
    looked up.
    """

    takes_marks = False

    def __init__(
        self, job: Job, policy: Policy, ratio: float | str, limit: int, fallback: TableStore
    ) -> None:
        super().__init__(job, ratio, limit, fallback)
        self._source = fallback
        self._policy = policy
        self._single_pass: SinglePassGather | HostSinglePassGather | None
        self._single_pass = single_pass_gather(self, fallback, "cache")
        self.page_gather = page_gather(fallback)
        self._to_host = fallback.to_host if isinstance(fallback, StagedGather) else None
        if isinstance(fallback, HostGather):
            self._single_pass = HostSinglePassGather(self, fallback, "cache", self._ring)

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Rank nodes and fill the cache; returns the seconds of each step."""
        below = super().prepare(footprint)
        if self._policy.name == OPTIMAL:
            self._allocate_cache()
            return {**below, CACHE_ROWS: self._rows}
        return {**below, **self._refill(footprint, ())}

    def foresee(self, footprint: Footprint, epochs: Sequence[int]) -> None:
        """Fill the cache of an oracle for ``epochs`` from their recorded footprints.

        Other policies do not use measured epochs.
        """
        if self._policy.name == OPTIMAL:
            self._refill(footprint, epochs)

    def curves(self, footprint: Footprint, epoch: int) -> list[CachePoint]:
        """Exact hits of this policy at every hundredth, and those of SIEVE.

        Nodes are ranked again, since the complete ranking is not stored. ``optimal#K`` ranks them
        for ``epoch`` and the K - 1 numbers after it.
        """
        nodes = self.job.graph.num_nodes
        epochs = range(epoch, epoch + self._policy.foreseen)
        ranking = ranked_for(self.job, self._policy, footprint, nodes, epochs)[0].cpu()
        trace = Trace.record(nodes, footprint(epoch))
        own = self._points(self._policy.text, CURVE, trace, trace.hits_at(ranking, CURVE))
        return [*own, *super().curves(footprint, epoch)]

    def _refill(self, footprint: Footprint, epochs: Iterable[int]) -> dict[Metric, float]:
        nodes, seconds = None, {HOTNESS_TIME: 0.0, RANK_TIME: 0.0}
        if self._rows < self.job.graph.num_nodes:  # a full cache needs no policy
            nodes, seconds = ranked_for(self.job, self._policy, footprint, self._rows, epochs)
        begin = time.perf_counter()
        if nodes is not None and nodes.is_cuda and not self._has_memory_to_fill():
            nodes = nodes.cpu()  # copied to the GPU in chunks
        self._allocate_cache()
        if nodes is None:
            self._source.copy_all(self._cache)
            self._lookup.remember_all()
        else:
            self._source.copy_rows(nodes, self._cache)
            self._lookup.remember(nodes)
        if self._cache.is_cuda:
            torch.cuda.synchronize(self._cache.device)  # the time must include the copies
        filled = time.perf_counter() - begin
        del nodes
        settle_memory(self.job, self._policy)
        return {**seconds, FILL_TIME: filled, CACHE_ROWS: self._rows}

    def _has_memory_to_fill(self) -> bool:
        """Whether the GPU has free memory for the cache and for filling it."""
        needed = (self._rows - self._cache.shape[0]) * self._row_bytes
        free = torch.cuda.mem_get_info(self.job.device)[0]  # memory reserved by torch is fragmented
        return int(free) >= needed + MARGIN_BYTES

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        ids = ids.to(self._cache.device)  # another framework's sampler may return them on the host
        if self._single_pass is None:
            return self._fetch_marked(split(ids, self._lookup, self._to_host))
        return self._single_pass.rows(self._cache, self._lookup, ids, remember=False)

    def load(self, batch: Batch) -> Tensor:
        """Rows of the batch's input nodes, by its marks if it has any that this cache takes."""
        marks = marks_of(batch) if self.takes_marks else None
        return self.fetch(batch.input_nodes) if marks is None else self._fetch_marked(marks)

    def _fetch_marked(self, marks: Marks) -> Tensor:
        rows = self._ring.rows(marks.slots.numel() + marks.missed.numel())
        self.count(marks.slots.numel(), "cache")
        gather_to(self._cache, marks.slots, marks.slots_at, rows)
        self._source.fetch_to(marks.missed, marks.missed_at, rows)
        return rows

    def cached(self) -> tuple[Tensor, IdLookup]:
        """The cached rows and their look-up."""
        return self._cache, self._lookup

    @property
    def cached_ids(self) -> Tensor:
        """Ids int64 ``[rows]`` of the cached rows, in the order of their slots."""
        known = torch.nonzero(self._lookup.generations == self._lookup.generation).squeeze(1)
        return torch.empty_like(known).scatter_(0, self._lookup.slots[known].long(), known)

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers; none where a GPU reads the table, by kernels with results of their
        own."""
        return super().reserve(rows) if self.page_gather is None else []

    def update(self, hit_slots: Tensor, missed: Tensor, rows: Tensor) -> None:
        """Do nothing: a static cache keeps its rows."""

    def close(self) -> None:
        """Free the cache and the fallback."""
        super().close()
        self._single_pass = None
