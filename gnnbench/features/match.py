"""Match (FastGL, section 4.1): of the next batch's rows only those that the last one lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from gnnbench.core.job import Job
from gnnbench.features.base import Over, RowStore
from gnnbench.features.host import HostGather
from gnnbench.features.single_pass import OverKept, OverLast, in_one_pass
from gnnbench.kernels.lookup import IdLookup


class MatchStore(Over, RowStore):
    """Rows kept from the last batch; the others come from the store ``under``.

    The last batch's rows stay on the device as they were served: nobody may write to them. Two
    batches of rows are held at a time, as where each is fetched whole while the last is still in
    use. Where a GPU reads the table itself, page by page, kernels do it in one pass (``OverKept``),
    and so does a CPU (``OverLast``); else the host reads the numbers of hits and of misses.
    """

    overlaps = True

    def __init__(self, job: Job, under: RowStore) -> None:
        super().__init__(job, under)
        self._lookup = IdLookup(job.graph.num_nodes, job.device)
        self._last: Tensor | None = None
        self._over: OverKept | OverLast | None = in_one_pass(self, under, "reused")
        if type(under) is HostGather:
            self._over = OverLast(self, under)

    def forget(self) -> None:
        """The next batch finds nothing to reuse."""
        super().forget()
        self._lookup.forget()
        self._last = None

    def lacking(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """What the batch before did not have, of each."""
        last: Tensor | None = None
        for ids in batches:
            yield ids if last is None else ids[~torch.isin(ids, last)]
            last = ids

    def fetch(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device; the next call reads them again."""
        ids = ids.to(self.job.device)
        if self._over is not None:
            kept = self._nothing if self._last is None else self._last
            try:
                self._last = self._over.rows(kept, self._lookup, ids, remember=True)
            except BaseException:  # of some ids the places are told, and the rows are not there
                self._lookup.remembered()
                self.forget()
                raise
            return self._last
        self._last = self._assembled(ids, self._lookup.find(ids), self._last)
        self._lookup.remember(ids)
        return self._last

    @property
    def _nothing(self) -> Tensor:
        table = self.job.graph.features
        return torch.empty((0, table.shape[1]), dtype=table.dtype, device=self.job.device)

    def _assembled(self, ids: Tensor, slots: Tensor, last: Tensor | None) -> Tensor:
        """Rows of ``ids``: of those with a slot from ``last``, of the others from below."""
        table = self.job.graph.features
        kept = slots >= 0
        missing, hits = (~kept).nonzero()[:, 0], kept.nonzero()[:, 0]
        rows = torch.empty((ids.numel(), table.shape[1]), dtype=table.dtype, device=self.job.device)
        if missing.numel():
            rows.index_copy_(0, missing, self._under.fetch(ids[missing]))
        if last is not None and hits.numel():
            rows.index_copy_(0, hits, last.index_select(0, slots[hits]))
        self.count(hits.numel(), "reused")
        return rows

    def close(self) -> None:
        """Free the rows and the look-up, and what the store below took."""
        self._last = self._over = None
        super().close()
