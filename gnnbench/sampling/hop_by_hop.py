"""``hop-by-hop``: DGL's method, per hop pick and three-pass id map."""

from __future__ import annotations

from torch import Tensor

from gnnbench.minibatch import MiniBatch
from gnnbench.ops.picks import PICKS
from gnnbench.ops.sampler import hop_by_hop
from gnnbench.sampling.base import Sampler


class HopByHop(Sampler):
    """DGL's method (Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).

    Local ids are the order of first occurrence. The default pick is DGL's own on each device.
    """

    name = "hop-by-hop"
    summary = "DGL: hop by hop, three-pass id map"

    @classmethod
    def picks_on(cls, device: str) -> tuple[str, ...]:
        """DGL draws by Floyd's method on the CPU and by reservoir on a GPU."""
        default = "floyd" if device == "cpu" else "reservoir"
        return (default, *(pick for pick in PICKS if pick != default))

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """One dispatch for all hops."""
        return hop_by_hop(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=key,
            batch=batch,
            with_positions=with_positions,
        )
