"""Decides which rank samples a batch, where the batch waits, and who trains on it in which step.

Logic alone, without processes, clocks or memory; ``gnnbench.distributed.scheduler`` applies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gnnbench.distributed.allocation import ALL_BATCHES, PUBLISHED, switches
from gnnbench.distributed.scheduler_messages import BatchWritten


@dataclass
class TrainingPace:
    """Mean seconds that a Trainer and a standby Trainer take for a batch, as far as measured."""

    _sums: dict[bool, tuple[float, int]] = field(default_factory=dict)

    def note(self, standby: bool, seconds: float) -> None:
        """Add the time of one batch."""
        total, number = self._sums.get(standby, (0.0, 0))
        self._sums[standby] = total + max(seconds, 1e-9), number + 1

    def times(self) -> tuple[float, float]:
        """Return T_t of the Trainers and of a standby Trainer.

        A standby Trainer is assumed to be as fast until it is measured. Before anything is measured
        both are 1: the sign of a profit does not depend on it.
        """
        means = {standby: total / number for standby, (total, number) in self._sums.items()}
        trainer_s = means.get(False, 1.0)
        return trainer_s, means.get(True, trainer_s)


@dataclass
class TrainingStep:
    """One update: its batches, and the ranks that reduce its gradients.

    ``joins``: one of the ranks was not in the step before, and needs the others' weights.
    """

    number: int
    batches: Sequence[int]
    members: tuple[int, ...]
    joins: bool
    unassigned: list[int] = field(init=False)  # batches

    def __post_init__(self) -> None:
        self.unassigned = list(self.batches)


@dataclass(frozen=True)
class AssignedShare:
    """A rank's share of a step: a batch and where it is written, or none (``batch`` None)."""

    step: TrainingStep
    batch: int | None
    written: BatchWritten | None = None


class NoShareLeft:
    """The epoch has no further share for a rank."""


NO_SHARE_LEFT = NoShareLeft()


class TaskQueue:
    """An epoch's batches, from unassigned to trained on, each by one rank.

    Samplers receive batches in order, on request. Batch b waits in slot b mod ``slots``, once batch
    b - ``slots`` has left it, so none waits for a slot that a later batch occupies. A step has as
    many batches as ranks take part, the next ones in order, so that updates do not depend on which
    rank is fast; which of the step's batches a rank receives does. A sampler that finds nothing to
    sample may stand by, and takes part in a step if GNNLab's profit is positive; of several
    samplers the first ones. ``profit``: what its M_r and N_t count (``allocation``).
    """

    def __init__(
        self,
        batches: int,
        slots: int,
        samplers: Sequence[int],
        trainers: Sequence[int],
        standby: bool = False,
        pace: TrainingPace | None = None,
        profit: str = ALL_BATCHES,
    ) -> None:
        self.batches, self.samplers, self.trainers = batches, tuple(samplers), tuple(trainers)
        self.standby, self.pace, self._profit = standby, pace or TrainingPace(), profit
        self.steps: list[TrainingStep] = []
        self.most_waiting = self.switched = 0
        self._sampled = self._formed = 0  # batches that were given out, and that are in a step
        self._slot_batch = list(range(slots))  # the batch that each slot is for
        self._slot_requests: dict[int, int] = {}  # rank by batch
        self._written: dict[int, BatchWritten] = {}
        self._share_requests: list[int] = []  # ranks
        self._next_step = dict.fromkeys((*self.trainers, *self.samplers), 0)  # by rank
        self._since: dict[int, float] = {}  # when each rank received its batch

    def next_batch(self) -> int | None:
        """Return the next batch to sample; None: all are given out."""
        if self._sampled == self.batches:
            return None
        self._sampled += 1
        return self._sampled - 1

    def request_slot(self, rank: int, batch: int) -> None:
        """Note that ``rank`` has sampled a batch and needs its slot."""
        self._slot_requests[batch] = rank

    def granted_slots(self) -> list[tuple[int, int, int]]:
        """Return rank, batch and slot of the requests whose slot is free, and forget them."""
        slots = len(self._slot_batch)
        granted = [
            (self._slot_requests[b], b, b % slots)
            for b in sorted(self._slot_requests)
            if self._slot_batch[b % slots] == b
        ]
        for _, batch, _ in granted:
            del self._slot_requests[batch]
        return granted

    def fill(self, batch: int, written: BatchWritten) -> None:
        """Note that a batch is in its slot."""
        self._written[batch] = written
        self.most_waiting = max(self.most_waiting, len(self._written))

    def release(self, batch: int) -> None:
        """Note that a batch has left its slot."""
        self._slot_batch[batch % len(self._slot_batch)] = batch + len(self._slot_batch)

    def request_share(self, rank: int, now: float) -> None:
        """Note that ``rank`` needs its share of the next step; ``now`` in seconds."""
        self._share_requests.append(rank)
        if (since := self._since.pop(rank, None)) is not None:
            self.pace.note(rank in self.samplers, now - since)

    def assigned_shares(self, now: float) -> list[tuple[int, AssignedShare | NoShareLeft]]:
        """Return the ranks whose request can be answered now, with their shares."""
        assigned: list[tuple[int, AssignedShare | NoShareLeft]] = []
        # Trainers first: they form the steps that standby samplers may be in.
        for rank in sorted(self._share_requests, key=lambda r: r in self.samplers):
            share = self._assign(rank)
            if share is None:
                continue
            self._share_requests.remove(rank)
            assigned.append((rank, share))
            if isinstance(share, AssignedShare) and share.batch is not None:
                self._since[rank] = now
        return assigned

    def _assign(self, rank: int) -> AssignedShare | NoShareLeft | None:
        while True:
            number = self._next_step[rank]
            if number == len(self.steps):
                if self._formed == self.batches:
                    return NO_SHARE_LEFT
                if rank not in self.trainers:
                    return None  # it is a standby: Trainers form steps
                self._form_step()
            step = self.steps[number]
            if rank not in step.members:
                self._next_step[rank] += 1
                continue
            batch = next((b for b in step.unassigned if b in self._written), None)
            if batch is None and step.unassigned:
                return None
            self._next_step[rank] += 1
            if batch is None:
                return AssignedShare(step, None)
            step.unassigned.remove(batch)
            return AssignedShare(step, batch, self._written.pop(batch))

    def _form_step(self) -> None:
        """Decide which ranks take part in the next step."""
        remaining = self.batches - self._formed
        before = self.steps[-1].members if self.steps else self.trainers
        members = list(self.trainers)
        for rank in self.samplers if self.standby else ():
            stands_by = rank in self._share_requests or rank in before
            if not (stands_by and remaining > len(members)):
                break
            if not switches(*self._left_and_trainers(len(members)), *self.pace.times()):
                break
            members.append(rank)
        joined = len(set(members) - set(before))
        self.switched += joined
        batches = range(self._formed, min(self._formed + len(members), self.batches))
        self.steps.append(TrainingStep(len(self.steps), batches, tuple(members), joined > 0))
        self._formed = batches.stop

    def _left_and_trainers(self, members: int) -> tuple[int, int]:
        """Return M_r and N_t of the profit of a standby Trainer that may follow ``members``.

        As published M_r are the batches in the queue, of which each standby Trainer before it
        takes one, and N_t are the Trainers.
        """
        if self._profit == PUBLISHED:
            trainers = len(self.trainers)
            return max(0, len(self._written) - (members - trainers)), trainers
        return self.batches - self._formed, members
