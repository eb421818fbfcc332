"""GNNLab's sampler: an id table that is not cleared between batches."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting


class GnnLab(Sampler):
    """Hop by hop, ids from a versioned table (after GNNLab, EuroSys'22, which clears its table).

    The table grows with the batches, and is zeroed when its 16-bit versions are exhausted.
    """

    name = "gnnlab"
    summary = "GNNLab: hop by hop, versioned table that accumulates ids"
    picks = ("fisher_yates", *(pick for pick in PICKS if pick != "fisher_yates"))

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._table = VersionedTable(setting.sampled_on)

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one dispatch."""
        return gnnlab(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=key,
            batch=batch,
            table=self._table,
            with_positions=with_positions,
        )
