"""``hop-by-hop``: DGL's method, per hop pick and id map; ``fused-map-by-hop``: over FastGL's."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.picks import PICKS
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.sampling.base import Sampler


class HopByHop(Sampler):
    """DGL's method (Wang et al., arXiv:1909.01315; id map as its ``OrderedHashTable``).

    Local ids are the order of first occurrence. The default pick is DGL's own on each device.
    """

    name = "hop-by-hop"
    summary = "DGL: hop by hop, three-pass id map"
    id_map: ClassVar[str] = "three-pass"

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
            id_map=self.id_map,
        )


class FusedMapByHop(HopByHop):
    """Fused-Map in its paper's shape (FastGL, ASPLOS'24, section 4.3): DGL's picks, then the map.

    A hop's id map alone differs from ``hop-by-hop``: one kernel inserts ids and numbers them, a
    second maps the edges. What ``fused-map`` gains beyond it is its fused picks, its one table for
    all hops and its one wait, none of which is in the paper.
    """

    name = "fused-map-by-hop"
    summary = "FastGL's paper: DGL's picks hop by hop, then Fused-Map's id map"
    id_map = "fused"
