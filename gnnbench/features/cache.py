"""A cache on the device before another store: rows that it holds are read there, others are
fetched from where the table is.

On a CPU the cache is a second table in memory: its counts are facts, its times are not a GPU's.
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
    Measure,
)
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.features.allocation import GIB, taking
from gnnbench.features.base import Over, Point, RowStore, TableStore
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
from gnnbench.features.single_pass import OverKept, in_one_pass
from gnnbench.kernels.features import gather
from gnnbench.kernels.lookup import IdLookup

CURVE = tuple(percent / 100 for percent in range(101))


class CacheStore(Over, RowStore):
    """Rows from the cache where it holds them, else from the store ``under``.

    ``ratio`` is of all nodes, or ``auto``: what batches without the cache leave of the device's
    memory, and of ``limit`` bytes (0: no limit). Raises ``UnsupportedError`` for a cache above the
    limit, ``GpuMemoryError`` or ``HostMemoryError`` for one that does not fit.
    """

    def __init__(self, job: Job, ratio: float | str, limit: int, under: RowStore) -> None:
        super().__init__(job, under)
        self._table, self._limit = job.graph.features, limit
        self._auto = ratio == AUTO
        nodes = job.graph.num_nodes
        self._rows = 0 if isinstance(ratio, str) else cached_rows(ratio, nodes)
        self._within_limit()
        self._cache = self._allocated(
            0
        )  # until ``prepare`` has ranked nodes, which takes memory, too
        self._lookup = IdLookup(nodes, job.device)
        self._ring = RowRing(job, job.device)

    def _within_limit(self) -> None:
        size = self._rows * self._row_bytes
        if self._limit and size > self._limit:
            raise UnsupportedError(
                f"{self._told(self._rows)} takes {size / GIB:.3g} GiB, more than"
                f" memory_gib={self._limit / GIB:.3g}; give a smaller ratio, or ratio={AUTO}"
            )

    def _told(self, rows: int) -> str:
        return f"a feature cache of ratio {rows / self.job.graph.num_nodes:.3g}"

    def _allocated(self, rows: int) -> Tensor:
        size = rows * self._row_bytes
        with taking(self._told(rows), size, f"give a smaller ratio, or ratio={AUTO}"):
            return self._table.new_empty((rows, *self._table.shape[1:]), device=self.job.device)

    def _take_memory(self) -> None:
        """Have the cache's memory from here on, in one piece."""
        if self._cache.shape[0] != self._rows:
            if self.job.device.type == "cuda":
                torch.cuda.empty_cache()
            self._cache = self._allocated(self._rows)

    def fit(self, peak: Callable[[], int]) -> dict[Measure, float]:
        """Derive the number of rows where the ratio is ``auto``."""
        if not self._auto:
            return {}
        nodes, device = self.job.graph.num_nodes, self.job.device
        limit = self._limit or None
        found: dict[Measure, float] = {}
        room, taken = None, 0
        if device.type == "cuda":
            begin = time.perf_counter()
            taken = peak()
            # What torch holds and has not given out is free to the process as well.
            room = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
            found = {PEAK_WITHOUT: taken, PEAK_TIME: time.perf_counter() - begin}
        self._rows = fitting_rows(nodes, self._row_bytes, room, taken, limit)
        return {**found, CACHE_RATIO: self._rows / nodes}

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device.

        The slow, obvious way: the split waits for the device, and each row is written twice.
        """
        ids = ids.to(self._cache.device)  # a foreign sampler's may be on the host
        slots = self._lookup.find(ids)
        hit, missed = (torch.nonzero(m).squeeze(1) for m in (slots >= 0, slots < 0))
        rows = self._ring.rows(ids.numel())
        self.count(hit.numel(), "cache")
        rows.index_copy_(0, hit, gather(self._cache, slots[hit]))
        fetched = self._under.fetch(ids[missed])
        rows.index_copy_(0, missed, fetched)
        self.served(slots[hit], ids[missed], fetched)
        return rows

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers."""
        return self._ring.reserve(rows)

    @abstractmethod
    def served(self, found: Tensor, missed: Tensor, rows: Tensor) -> None:
        """Hear which slots a batch found, int32 ``[hits]``, and which ids it missed, ``[n]``, with
        the ``rows`` ``[n, feature_dim]`` that were fetched for them."""

    def curves(self, footprint: Footprint, epoch: int) -> list[Point]:
        """Exact hits of SIEVE at every tenth, of a cache that an epoch apart has warmed."""
        nodes = self.job.graph.num_nodes
        before, trace = (Trace.record(nodes, footprint(e)) for e in (PRESAMPLED, epoch))
        return self._points(SIEVE, RATIOS, trace, trace.sieve_hits(RATIOS, before))

    @staticmethod
    def _points(
        policy: str, ratios: Sequence[float], trace: Trace, hits: Sequence[int]
    ) -> list[Point]:
        pairs = zip(ratios, hits, strict=True)
        return [Point(policy, ratio, found, trace.requests - found) for ratio, found in pairs]

    def close(self) -> None:
        """Free the cache, and what fetches its misses."""
        super().close()
        del self._cache, self._lookup, self._ring


class StaticCache(CacheStore):
    """The rows of the policy's first nodes (GNNLab, EuroSys 2022; PaGraph, SoCC 2020).

    ``optimal`` holds nothing until it is told an epoch. Where a GPU reads the table itself, page by
    page, kernels do all in one pass (``OverKept``).
    """

    def __init__(
        self, job: Job, policy: Policy, ratio: float | str, limit: int, under: TableStore
    ) -> None:
        super().__init__(job, ratio, limit, under)
        self._source = under
        self._policy = policy
        self._over: OverKept | None = in_one_pass(self, under, "cache")

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Rank and fill; the seconds of each part."""
        below = super().prepare(footprint)
        if self._policy.name == OPTIMAL:
            self._take_memory()
            return {**below, CACHE_ROWS: self._rows}
        return {**below, **self._refill(footprint, ())}

    def foresee(self, footprint: Footprint, epoch: int) -> None:
        """Fill the cache of ``optimal`` for ``epoch`` by its recorded footprint, before it runs.

        Other policies know nothing of the epochs that are measured.
        """
        if self._policy.name == OPTIMAL:
            self._refill(footprint, (epoch,))

    def curves(self, footprint: Footprint, epoch: int) -> list[Point]:
        """Exact hits of this policy at every hundredth, and those of SIEVE; nodes are ranked anew,
        for the order of all of them is not kept."""
        nodes = self.job.graph.num_nodes
        ranking = ranked_for(self.job, self._policy, footprint, nodes, (epoch,))[0].cpu()
        trace = Trace.record(nodes, footprint(epoch))
        own = self._points(self._policy.text, CURVE, trace, trace.hits_at(ranking, CURVE))
        return [*own, *super().curves(footprint, epoch)]

    def _refill(self, footprint: Footprint, epochs: Iterable[int]) -> dict[Measure, float]:
        nodes, seconds = None, {HOTNESS_TIME: 0.0, RANK_TIME: 0.0}
        if self._rows < self.job.graph.num_nodes:  # of all rows a policy has nothing to say
            nodes, seconds = ranked_for(self.job, self._policy, footprint, self._rows, epochs)
        begin = time.perf_counter()
        if nodes is not None and nodes.is_cuda and not self._has_room_beside():
            nodes = nodes.cpu()  # they go over piece by piece
        self._take_memory()
        if nodes is None:
            self._source.copy_all(self._cache)
            self._lookup.remember_all()
        else:
            self._source.copy_rows(nodes, self._cache)
            self._lookup.remember(nodes)
        if self._cache.is_cuda:
            torch.cuda.synchronize(self._cache.device)  # the seconds are to be those of the work
        filled = time.perf_counter() - begin
        del nodes
        settle_memory(self.job, self._policy)
        return {**seconds, FILL_TIME: filled, CACHE_ROWS: self._rows}

    def _has_room_beside(self) -> bool:
        """Whether the GPU has the cache's memory left, and what filling it takes."""
        lacks = (self._rows - self._cache.shape[0]) * self._row_bytes
        free = torch.cuda.mem_get_info(self.job.device)[0]  # what torch holds is in many pieces
        return int(free) >= lacks + MARGIN_BYTES

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        if self._over is None:
            return super().fetch(ids)
        ids = ids.to(self._cache.device)
        return self._over.rows(self._cache, self._lookup, ids, remember=False)

    def reserve(self, rows: int) -> list[Tensor]:
        """The ring's buffers; none where one pass gives rows in memory of their own."""
        return super().reserve(rows) if self._over is None else []

    def served(self, found: Tensor, missed: Tensor, rows: Tensor) -> None:
        """What a static cache holds stays as it is."""

    def close(self) -> None:
        """Free all of it."""
        super().close()
        self._over = None
