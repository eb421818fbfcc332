"""``fused-map``: FastGL's sampler, ids mapped while the hash table is filled."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import HighWater, fused_map
from gnnbench.kernels.fused_async import SubmissionState, SubmittedFusedMap
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.arguments import seed_tensor, whole
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting


class FusedMap(Sampler):
    """Fused-Map (FastGL, ASPLOS'24, section 4.3): on a GPU the host waits once, for the sizes.

    Memory is sized by the largest batch so far; a batch that does not fit is drawn again, larger,
    with the same edges.
    """

    name = "fused-map"
    summary = "FastGL: all hops over one table, no wait before the sizes"
    picks = ("floyd", *(pick for pick in PICKS if pick != "floyd"))

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._high_water = HighWater()
        self._state: SubmissionState | None = None

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """One dispatch for all hops."""
        drawn, took = fused_map(
            self._indptr,
            self._indices,
            seeds,
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=key,
            batch=batch,
            with_positions=with_positions,
            capacity=self._high_water.capacity,
        )
        self._high_water.see(took)
        return drawn

    @property
    def asks(self) -> bool:
        """On a GPU: sizes are read when the batch is fetched."""
        return self._sampled_on.type == "cuda"

    def begin(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """All kernels of a batch; one before which nothing is known of sizes is drawn at once."""
        capacity = self._high_water.capacity
        if not self.asks or not capacity or not seeds.numel():
            return self.sample(seeds, epoch, batch)
        if self._state is None:
            self._state = SubmissionState(self._sampled_on)
        asked = SubmittedFusedMap(
            self._indptr,
            self._indices,
            seed_tensor(seeds, self._sampled_on),
            self.fanouts,
            pick=self._pick,
            frontier=self.frontier,
            key=self._key_of(epoch),
            batch=whole("batch", batch, 0, 2**32 - 1),
            with_positions=self.setting.with_positions,
            capacity=capacity,
            state=self._state,
        )
        return asked, batch

    def end(self, ticket: Any) -> MiniBatch:
        """The batch, once its sizes are known."""
        if isinstance(ticket, MiniBatch):
            return ticket
        asked, batch = ticket
        drawn, took = asked.read()
        self._high_water.see(took)
        drawn.frontier, drawn.number = self.frontier, batch
        return drawn
