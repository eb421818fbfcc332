"""One table for all ranks: each holds a part of its rows, or of a cache's, in its own memory, and
reads those of the others there (WholeGraph's chunked memory; MLPerf's entries).

On a CPU shards are shared memory: counts are facts, times are not those of GPUs.
"""

from __future__ import annotations

import hashlib
import time

import torch
from torch import Tensor

from gnnbench.core.counters import CACHE_ROWS, FILL_TIME, HOTNESS_TIME, RANK_TIME, Measure
from gnnbench.core.job import Job
from gnnbench.features.base import Over, RowStore, TableStore
from gnnbench.features.policies.policy import Footprint, Policy, cached_rows
from gnnbench.features.ranking import ranked_for, settle_memory
from gnnbench.features.ring import RowRing
from gnnbench.features.shard_memory import Shards
from gnnbench.features.uva import ZeroCopyGather
from gnnbench.kernels.access import NAIVE, PAGE_BYTES, PAGE_ORDERED, READERS
from gnnbench.kernels.features import gather
from gnnbench.kernels.sharded import gather_sharded

PATHS = ("cache", "peer", "zero_copy")  # own shard, another rank's, the host's table


class ShardedRows(Over, RowStore):
    """The rows of the policy's first nodes, dealt out over the ranks; others from ``under``.

    ``ratio`` is of all nodes and of all ranks together: each holds a part of those rows. With a
    ratio of 1 the policy has nothing to say, and an id is its own place. Raises as ``Shards``.
    """

    def __init__(self, job: Job, policy: Policy, ratio: float, under: TableStore) -> None:
        super().__init__(job, under)
        self._source = under
        self._table, self._policy = job.graph.features, policy
        self._rows = cached_rows(ratio, job.graph.num_nodes)
        self._shards = Shards(self._table, self._rows, job.device, job.peers)
        if job.device.type == "cuda":
            self.bytes_apart = self._shards.own.nbytes
        self._places: Tensor | None = None  # int32 [num_nodes]: where an id's row is held, or -1
        self._ring = RowRing(job, job.device)
        self._one_kernel = job.device.type == "cuda" and self._is_read_by_one_kernel()
        self._served = torch.zeros(len(PATHS), dtype=torch.int64, device=job.device)
        self._calls = 0
        job.counts.settled_by(self._settle)

    @property
    def _whole(self) -> bool:
        return self._rows == self.job.graph.num_nodes

    def _is_read_by_one_kernel(self) -> bool:
        under = self._under
        access = under.access if isinstance(under, ZeroCopyGather) else ""
        return self._whole or access in (NAIVE, PAGE_ORDERED)

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """Rank, fill the own shard, and wait for those of the others; the seconds of each part."""
        below = super().prepare(footprint)
        graph, what = self.job.graph, "all rows"
        seconds = {HOTNESS_TIME: 0.0, RANK_TIME: 0.0}
        held = torch.arange(graph.num_nodes)
        if not self._whole:
            held, seconds = ranked_for(self.job, self._policy, footprint, self._rows)
            places = held.new_full((graph.num_nodes,), -1, dtype=torch.int32)
            places[held] = torch.arange(self._rows, dtype=torch.int32, device=held.device)
            self._places = places.to(self.job.device)
            what = hashlib.sha256(held.cpu().numpy().tobytes()).hexdigest()
            del places
        begin, own = time.perf_counter(), self._shards.own
        self._source.copy_rows(held[self._shards.rank :: self._shards.ranks].contiguous(), own)
        if own.is_cuda:
            torch.cuda.synchronize(own.device)  # others read it next
        self._shards.share(what)
        filled = time.perf_counter() - begin
        if not self._whole:
            del held
            settle_memory(self.job, self._policy)
        return {**below, **seconds, FILL_TIME: filled, CACHE_ROWS: self._shards.own.shape[0]}

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        ids = ids.to(self.job.device)
        return self._by_one_kernel(ids) if self._one_kernel else self._piece_by_piece(ids)

    def _piece_by_piece(self, ids: Tensor) -> Tensor:
        """The simple way, on any device: the rows of each shard, then those that none has."""
        at = ids.long()
        places = at if self._places is None else self._places[at]
        owners = torch.where(places < 0, -1, places % self._shards.ranks)
        rows = self._ring.rows(ids.numel())
        for owner, shard in enumerate(self._shards.all):
            here = torch.nonzero(owners == owner).squeeze(1)
            self.count(here.numel(), "cache" if owner == self._shards.rank else "peer")
            rows.index_copy_(0, here, gather(shard, places[here] // self._shards.ranks))
        if not self._whole:
            missed = torch.nonzero(owners < 0).squeeze(1)
            rows.index_copy_(0, missed, self._under.fetch(ids[missed]))
        return rows

    def _by_one_kernel(self, ids: Tensor) -> Tensor:
        under, table, page_bytes, readers = self._under, None, 0, READERS
        if not self._whole:
            assert isinstance(under, ZeroCopyGather)
            table, readers = under.table, under.blocks
            page_bytes = PAGE_BYTES if under.access == PAGE_ORDERED else 0
        self._calls += 1
        return gather_sharded(
            self._shards.all, self._shards.rank, self._places, table, ids, self._served,
            page_bytes=page_bytes, readers=readers,
        )  # fmt: skip

    def _settle(self) -> None:
        """Count what the device alone knows, where somebody reads the counts."""
        if not self._calls:
            return
        served = self._served.tolist()
        self._served.zero_()
        for rows, where in zip(served, PATHS, strict=True):
            if rows or where == "cache":
                self.count(rows, where, self._calls)
        self._calls = 0

    def close(self) -> None:
        """Give back the shard, and what fetches the other rows."""
        super().close()
        self._shards.close()
        del self._places, self._ring
