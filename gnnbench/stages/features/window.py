"""Rows of several batches' union, fetched once."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gnnbench.cache.policy import Footprint
from gnnbench.minibatch import Batch
from gnnbench.ops.id_set import IdSet, union_ids
from gnnbench.stages.counts import WINDOW_BYTES, Measure
from gnnbench.stages.features.base import FeatureStore, RowStore
from gnnbench.stages.job import Job


class WindowStore(FeatureStore):
    """The union of a window's nodes from the store ``under``, copied out batch by batch.

    The union is fetched with the window's first batch, in ascending order of ids, and held until
    the next window's; where a batch's rows are in it a set of bits tells (``IdSet``). A batch that
    was not announced is a window by itself. On a GPU the host waits once a window, for the size of
    the union.
    """

    overlaps = True

    def __init__(self, job: Job, under: RowStore, window: int) -> None:
        super().__init__(job)
        self._under, self.window = under, window
        self._waiting: list[Batch] = []
        self._ids: dict[int, Tensor] = {}  # a batch's nodes on the device, by its identity
        self._union: tuple[IdSet, Tensor] | None = None  # and its rows
        self._most = 0
        job.counts.settled_by(self._settle)

    def forget(self) -> None:
        """No batch is announced any more."""
        self._waiting, self._ids, self._union = [], {}, None

    def announce(self, batches: Sequence[Batch]) -> None:
        """Hear which batches are loaded next; their rows are fetched with the first of them."""
        self.forget()
        self._waiting = list(batches)

    def prepare(self, footprint: Footprint) -> dict[Measure, float]:
        """What the store below takes to get ready."""
        return self._under.prepare(footprint)

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        if not any(batch is one for one in self._waiting):
            self.announce([batch])
        known, rows = self._union or self._fetched()
        return known.gather(rows, self._ids[id(batch)])

    def _fetched(self) -> tuple[IdSet, Tensor]:
        self._ids = {id(b): b.input_nodes.to(self.job.device) for b in self._waiting}
        given = [self._ids[id(b)] for b in self._waiting]
        known = union_ids(given, self.job.graph.num_nodes)
        rows = self._under.fetch(known.ids)
        self.count(sum(ids.numel() for ids in given) - known.ids.numel(), "reused")
        self._most = max(self._most, known.nbytes + rows.nbytes)
        self._union = known, rows
        return self._union

    def _settle(self) -> None:
        if self._most:
            self.job.counts.add("features", WINDOW_BYTES, self._most)
            self._most = 0

    def close(self) -> None:
        """Free the union, and what the store below took."""
        self.forget()
        self._under.close()
