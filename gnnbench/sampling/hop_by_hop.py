"""DGL's method, pick and id map per hop; and a variant with FastGL's id map."""

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
        """Draw all hops in one dispatch."""
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
    """Fused-Map as in its paper (FastGL, ASPLOS'24, section 4.3): DGL's picks, then the map.

    Only the id map differs from ``hop-by-hop``: one kernel inserts and numbers ids, a second maps
    the edges. ``fused-map`` adds fused picks, one table for all hops and a single wait; these are
    not in the paper.
    """

    name = "fused-map-by-hop"
    summary = "FastGL's paper: DGL's picks hop by hop, then Fused-Map's id map"
    id_map = "fused"
