"""Decides who trains on which batch where each batch is an update of its own (bounded staleness).

GNNLab, sections 5.2 and 7.8. The bound is that of stale synchronous parallel training: the paper
names bounded staleness and prints no rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.distributed.allocation import ALL_BATCHES, PUBLISHED, switches
from gnnbench.distributed.tasks import (
    NO_SHARE_LEFT,
    AssignedShare,
    NoShareLeft,
    TaskQueue,
    TrainingPace,
    TrainingStep,
)


class AsyncTaskQueue(TaskQueue):
    """An epoch's batches, each a step of one rank; ranks take the oldest batch in the queue.

    A rank receives its batch c, counted from 1, only when every other rank that trains has finished
    its batch c - ``staleness``. It reads the weights for batch c with its update of batch c - 1. So
    a gradient lacks at most 2 ``staleness`` updates of each other rank. A standby Trainer trains
    while it has a batch, and then counts on from the slowest rank. GNNLab's profit is computed
    whenever a standby Trainer requests a batch. The epoch ends for all ranks when all batches are
    trained on.
    """

    def __init__(
        self,
        batches: int,
        slots: int,
        samplers: Sequence[int],
        trainers: Sequence[int],
        staleness: int,
        standby: bool = False,
        pace: TrainingPace | None = None,
        profit: str = ALL_BATCHES,
    ) -> None:
        super().__init__(batches, slots, samplers, trainers, standby, pace, profit)
        self._staleness = staleness
        self._received = dict.fromkeys(self.trainers, 0)  # batches of ranks that have had any
        self._finished = dict.fromkeys(self.trainers, 0)

    def finish(self, rank: int) -> None:
        """Note that ``rank`` has made the update of its oldest batch."""
        self._finished[rank] += 1

    def _assign(self, rank: int) -> AssignedShare | NoShareLeft | None:
        if len(self.steps) == self.batches:
            return NO_SHARE_LEFT if self._finished == self._received else None
        if not self._written or not (rank in self.trainers or self._has_profit()):
            return None
        others = [r for r in self._finished if r != rank and self._trains(r)]
        slowest = min((self._finished[r] for r in others), default=None)
        trains = rank in self._received and self._trains(rank)
        if trains:
            count = self._received[rank]
        else:
            fastest = max((self._received[r] for r in others), default=0)
            count = max(slowest or 0, fastest - self._staleness)
        if slowest is not None and count + 1 - self._staleness > slowest:
            return None
        if not trains:
            self.switched += rank not in self._received
            self._finished[rank] = count
        self._received[rank] = count + 1
        batch = min(self._written)
        step = TrainingStep(len(self.steps), [batch], (rank,), joins=False)
        step.unassigned.clear()
        self.steps.append(step)
        self._formed += 1
        return AssignedShare(step, batch, self._written.pop(batch))

    def _trains(self, rank: int) -> bool:
        """Whether a rank is a Trainer, or a standby Trainer that has a batch."""
        return rank in self.trainers or self._received[rank] > self._finished[rank]

    def _has_profit(self) -> bool:
        """Whether a standby Trainer is to take a batch now."""
        trainers = len(self.trainers)
        if self._profit == PUBLISHED:
            return switches(len(self._written), trainers, *self.pace.times())
        awake = sum(self._trains(rank) for rank in self._received)
        return switches(self.batches - self._formed, awake, *self.pace.times())
