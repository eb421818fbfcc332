"""FastSample's sampler: fused, directly into CSC, with a dense map."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import DenseMap, HighWater, fastsample
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting


class FastSample(Sampler):
    """Fused sampling into CSC without COO (FastSample, Algorithm 1).

    The dense map takes 4 bytes a node on the sampling device; a batch resets its own entries.
    """

    name = "fastsample"
    summary = "FastSample: fused, straight into CSC over a dense map"
    picks = ("floyd", *(pick for pick in PICKS if pick != "floyd"))

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._dense_map = DenseMap.of(self.num_nodes, setting.sampled_on)
        self._high_water = HighWater()

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one dispatch."""
        drawn, used = fastsample(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=key,
            batch=batch,
            dense_map=self._dense_map,
            with_positions=with_positions,
            capacity=self._high_water.capacity,
        )
        self._high_water.see(used)
        return drawn
