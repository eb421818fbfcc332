"""FastSample's sampler: fused, directly into CSC, with a dense map."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels.fused import FASTSAMPLE_KERNELS, DenseMap, HighWater, fastsample
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting

KERNEL = Option(
    "kernel",
    "vectorized",
    "vectorized: one pass over the edges with vector instructions and prefetching; algorithm-1: the"
    " paper's two loops without either, on the CPU only",
    FASTSAMPLE_KERNELS,
    added=True,
)


class FastSample(Sampler):
    """Fused sampling into CSC without COO (FastSample, Algorithm 1).

    The dense map takes 4 bytes a node on the sampling device; a batch resets its own entries. With
    ``kernel="algorithm-1"`` the two loops run as printed, in parallel; edges are the same.
    """

    name = "fastsample"
    summary = "FastSample: fused, straight into CSC over a dense map"
    picks = ("floyd", *(pick for pick in PICKS if pick != "floyd"))
    options: ClassVar[dict[str, Option]] = {KERNEL.name: KERNEL}

    def __init__(self, setting: Setting, kernel: str = KERNEL.default) -> None:
        if kernel == "algorithm-1" and setting.sampled_on.type != "cpu":
            raise UnsupportedError(
                "kernel 'algorithm-1' runs on the CPU; give kernel=vectorized on a GPU, or"
                " topology=cpu"
            )
        super().__init__(setting)
        self._kernel = kernel
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
            kernel=self._kernel,
        )
        self._high_water.see(used)
        return drawn
