"""One table or cache divided over ranks; each stores a shard and reads the others' shards
(WholeGraph's chunked memory; MLPerf's entries).

On a CPU shards are in shared memory: counts are valid, times are not those of GPUs.
"""

from __future__ import annotations

import hashlib
import time

import torch
from torch import Tensor

from gnnbench.core.counters import CACHE_ROWS, FILL_TIME, HOTNESS_TIME, RANK_TIME, Metric
from gnnbench.core.job import Job
from gnnbench.features.base import FallbackStore, RowStore, TableStore
from gnnbench.features.policies.policy import Footprint, Policy, cached_rows
from gnnbench.features.ranking import ranked_for, settle_memory
from gnnbench.features.ring import RowRing
from gnnbench.features.shard_memory import Shards
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import NAIVE, PAGE_BYTES, PAGE_ORDERED, READERS
from gnnbench.kernels.features import gather
from gnnbench.kernels.sharded import gather_sharded

PATHS = ("cache", "peer", "zero_copy")  # own shard, another rank's, the host's table


class ShardedRows(FallbackStore, RowStore):
    """The rows of the policy's first nodes, divided over the ranks; others from the ``fallback``.

    ``ratio`` is the share of all nodes that all ranks cache together. With a ratio of 1 the policy
    is unused, and an id is its row's place. Raises as ``Shards``.
    """

    def __init__(self, job: Job, policy: Policy, ratio: float, fallback: TableStore) -> None:
        super().__init__(job, fallback)
        self._source = fallback
        self._table, self._policy = job.graph.features, policy
        self._rows = cached_rows(ratio, job.graph.num_nodes)
        self._shards = Shards(self._table, self._rows, job.device, job.peers)
        if job.device.type == "cuda":
            self.bytes_apart = self._shards.own.nbytes
        self._places: Tensor | None = None  # int32 [num_nodes]: place of an id's row, or -1
        self._ring = RowRing(job, job.device)
        self._one_kernel = job.device.type == "cuda" and self._is_read_by_one_kernel()
        self._served = torch.zeros(len(PATHS), dtype=torch.int64, device=job.device)
        self._calls = 0
        job.counts.settled_by(self._settle)

    @property
    def _is_full_table(self) -> bool:
        return self._rows == self.job.graph.num_nodes

    def _is_read_by_one_kernel(self) -> bool:
        fallback = self._fallback
        access = fallback.access if isinstance(fallback, ZeroCopyGather) else ""
        return self._is_full_table or access in (NAIVE, PAGE_ORDERED)

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Rank nodes, fill the shard and open the others; returns the seconds of each step."""
        measures = super().prepare(footprint)
        graph, content = self.job.graph, "all rows"
        seconds = {HOTNESS_TIME: 0.0, RANK_TIME: 0.0}
        cached = torch.arange(graph.num_nodes)
        if not self._is_full_table:
            cached, seconds = ranked_for(self.job, self._policy, footprint, self._rows)
            places = cached.new_full((graph.num_nodes,), -1, dtype=torch.int32)
            places[cached] = torch.arange(self._rows, dtype=torch.int32, device=cached.device)
            self._places = places.to(self.job.device)
            content = hashlib.sha256(cached.cpu().numpy().tobytes()).hexdigest()
            del places
        begin, shard = time.perf_counter(), self._shards.own
        self._source.copy_rows(cached[self._shards.rank :: self._shards.ranks].contiguous(), shard)
        if shard.is_cuda:
            torch.cuda.synchronize(shard.device)  # other ranks read it next
        self._shards.share(content)
        filled = time.perf_counter() - begin
        if not self._is_full_table:
            del cached
            settle_memory(self.job, self._policy)
        return {**measures, **seconds, FILL_TIME: filled, CACHE_ROWS: self._shards.own.shape[0]}

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        ids = ids.to(self.job.device)
        return self._by_one_kernel(ids) if self._one_kernel else self._by_shard(ids)

    def _by_shard(self, ids: Tensor) -> Tensor:
        """The simple path, on any device: the rows of each shard, then the misses."""
        at = ids.long()
        places = at if self._places is None else self._places[at]
        owners = torch.where(places < 0, -1, places % self._shards.ranks)
        rows = self._ring.rows(ids.numel())
        for owner, shard in enumerate(self._shards.all):
            here = torch.nonzero(owners == owner).squeeze(1)
            self.count(here.numel(), "cache" if owner == self._shards.rank else "peer")
            rows.index_copy_(0, here, gather(shard, places[here] // self._shards.ranks))
        if not self._is_full_table:
            missed = torch.nonzero(owners < 0).squeeze(1)
            rows.index_copy_(0, missed, self._fallback.fetch(ids[missed]))
        return rows

    def _by_one_kernel(self, ids: Tensor) -> Tensor:
        fallback, table, page_bytes, readers = self._fallback, None, 0, READERS
        if not self._is_full_table:
            assert isinstance(fallback, ZeroCopyGather)
            table, readers = fallback.table, fallback.blocks
            page_bytes = PAGE_BYTES if fallback.access == PAGE_ORDERED else 0
        self._calls += 1
        return gather_sharded(
            self._shards.all, self._shards.rank, self._places, table, ids, self._served,
            page_bytes=page_bytes, readers=readers,
        )  # fmt: skip

    def _settle(self) -> None:
        """Read the device's counters, when the counts are requested."""
        if not self._calls:
            return
        served = self._served.tolist()
        self._served.zero_()
        for rows, where in zip(served, PATHS, strict=True):
            if rows or where == "cache":
                self.count(rows, where, self._calls)
        self._calls = 0

    def close(self) -> None:
        """Free the shard and the fallback."""
        super().close()
        self._shards.close()
        del self._places, self._ring
