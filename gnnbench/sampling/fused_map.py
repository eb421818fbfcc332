"""``fused-map``: FastGL's sampler, ids mapped while the hash table is filled."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import HighWater, fused_map
from gnnbench.kernels.fused_async import SubmissionState, SubmittedFusedMap
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.arguments import seed_tensor, whole
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.setting import Setting


@dataclass(frozen=True)
class SubmittedBatch:
    """A batch whose kernels are enqueued; ``number`` is its position in the epoch."""

    work: SubmittedFusedMap
    number: int


class FusedMap(Sampler):
    """Fused-Map (FastGL, ASPLOS'24, section 4.3): on a GPU the host waits once, for the sizes.

    Capacity follows the largest batch so far. A batch that does not fit is drawn again with more
    capacity and the same edges.
    """

    name = "fused-map"
    summary = "FastGL: all hops over one table, no wait before the sizes"
    picks = ("floyd", *(pick for pick in PICKS if pick != "floyd"))

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._high_water = HighWater()
        self._state: SubmissionState | None = None

    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw all hops in one dispatch."""
        drawn, used = fused_map(
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
        self._high_water.see(used)
        return drawn

    @property
    def submits_async(self) -> bool:
        """True on a GPU: ``end`` reads the sizes."""
        return self._sampled_on.type == "cuda"

    def begin(self, seeds: Tensor, epoch: int, batch: int) -> object:
        """Enqueue all kernels of a batch; draw it at once while no capacity is known."""
        capacity = self._high_water.capacity
        if not self.submits_async or not capacity or not seeds.numel():
            return self.sample(seeds, epoch, batch)
        if self._state is None:
            self._state = SubmissionState(self._sampled_on)
        work = SubmittedFusedMap(
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
        return SubmittedBatch(work, batch)

    def end(self, ticket: object) -> MiniBatch:
        """Return the batch after reading its sizes."""
        if not isinstance(ticket, SubmittedBatch):
            return super().end(ticket)
        drawn, used = ticket.work.read()
        self._high_water.see(used)
        drawn.frontier, drawn.number = self.frontier, ticket.number
        return drawn
