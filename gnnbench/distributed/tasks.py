"""Whose turn it is: who draws a batch, where it waits, and who trains on it in which step.

Logic alone: no process, no clock and no memory is known here (``gnnbench.distributed.scheduler``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gnnbench.distributed.allocation import switches


@dataclass
class Pace:
    """Mean seconds that a Trainer and a standby Trainer take for a batch, as far as known."""

    _sums: dict[bool, tuple[float, int]] = field(default_factory=dict)

    def note(self, standby: bool, seconds: float) -> None:
        """One more batch."""
        total, number = self._sums.get(standby, (0.0, 0))
        self._sums[standby] = total + max(seconds, 1e-9), number + 1

    def times(self) -> tuple[float, float]:
        """T_t of the Trainers and of a standby one, which is taken for one of them until known.

        Before anything was trained both are 1: the sign of a profit does not depend on it.
        """
        known = {standby: total / number for standby, (total, number) in self._sums.items()}
        trains = known.get(False, 1.0)
        return trains, known.get(True, trains)


@dataclass
class Step:
    """One update: the batches that it is of, and the ranks that reduce its gradients.

    ``joins``: one of the ranks was not in the step before, and needs the others' weights.
    """

    number: int
    batches: range
    members: tuple[int, ...]
    joins: bool
    left: list[int] = field(init=False)  # of its batches those that nobody has yet

    def __post_init__(self) -> None:
        self.left = list(self.batches)


@dataclass(frozen=True)
class Dealt:
    """A rank's part of a step: a batch and what is known of it, or none (``batch`` None)."""

    step: Step
    batch: int | None
    filled: Any = None


class Over:
    """Nothing is left for a rank in the epoch."""


OVER = Over()


class Tasks:
    """An epoch's batches, from nobody's to trained on, each by one rank.

    Samplers are given batches in their order as they ask. Batch b waits in place b mod ``places``,
    once batch b - ``places`` has left it: so none waits for a place that a later one has. A step is
    of as many batches as ranks take part, the next ones in order, so that updates do not depend on
    who is fast; which of its batches a rank has does. A sampler that finds nothing to draw may
    stand by, and takes part in a step where GNNLab's profit says so; of several the first ones.
    """

    def __init__(
        self,
        batches: int,
        places: int,
        samplers: Sequence[int],
        trainers: Sequence[int],
        standby: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self.batches, self.samplers, self.trainers = batches, tuple(samplers), tuple(trainers)
        self.standby, self.pace = standby, pace or Pace()
        self.steps: list[Step] = []
        self.most_waiting = self.switched = 0
        self._drawn = self._formed = 0
        self._next = list(range(places))  # the batch that each place is for
        self._asking: dict[int, int] = {}  # batches that want their place, and who draws them
        self._filled: dict[int, Any] = {}
        self._wanting: list[int] = []
        self._turn = dict.fromkeys((*self.trainers, *self.samplers), 0)  # the next step to look at
        self._since: dict[int, float] = {}

    def draw(self) -> int | None:
        """The next batch for the sampler that asks; None: all are given out."""
        if self._drawn == self.batches:
            return None
        self._drawn += 1
        return self._drawn - 1

    def ask_room(self, rank: int, batch: int) -> None:
        """``rank`` has drawn a batch, and wants its place."""
        self._asking[batch] = rank

    def granted(self) -> list[tuple[int, int, int]]:
        """Of those that ask for their place the ones that have it now: rank, batch, place."""
        places = len(self._next)
        found = [
            (self._asking[b], b, b % places)
            for b in sorted(self._asking)
            if self._next[b % places] == b
        ]
        for _, batch, _ in found:
            del self._asking[batch]
        return found

    def fill(self, batch: int, what: Any) -> None:
        """A batch lies in its place."""
        self._filled[batch] = what
        self.most_waiting = max(self.most_waiting, len(self._filled))

    def free(self, batch: int) -> None:
        """A batch has left its place."""
        self._next[batch % len(self._next)] = batch + len(self._next)

    def want(self, rank: int, now: float) -> None:
        """``rank`` wants its part of the next step; ``now`` in seconds."""
        self._wanting.append(rank)
        if (since := self._since.pop(rank, None)) is not None:
            self.pace.note(rank in self.samplers, now - since)

    def dealt(self, now: float) -> list[tuple[int, Dealt | Over]]:
        """What those that want a part have now."""
        found: list[tuple[int, Dealt | Over]] = []
        # Who trains forms the steps that who stands by may be in.
        for rank in sorted(self._wanting, key=lambda r: r in self.samplers):
            dealt = self._deal(rank)
            if dealt is None:
                continue
            self._wanting.remove(rank)
            found.append((rank, dealt))
            if isinstance(dealt, Dealt) and dealt.batch is not None:
                self._since[rank] = now
        return found

    def _deal(self, rank: int) -> Dealt | Over | None:
        while True:
            nth = self._turn[rank]
            if nth == len(self.steps):
                if self._formed == self.batches:
                    return OVER
                if rank not in self.trainers:
                    return None  # it stands by: who trains forms steps
                self._form()
            step = self.steps[nth]
            if rank not in step.members:
                self._turn[rank] += 1
                continue
            there = next((b for b in step.left if b in self._filled), None)
            if there is None and step.left:
                return None
            self._turn[rank] += 1
            if there is None:
                return Dealt(step, None)
            step.left.remove(there)
            return Dealt(step, there, self._filled.pop(there))

    def _form(self) -> None:
        """Decide who takes part in the next step."""
        remaining = self.batches - self._formed
        before = self.steps[-1].members if self.steps else self.trainers
        members = list(self.trainers)
        for rank in self.samplers if self.standby else ():
            stands_by = rank in self._wanting or rank in before
            if not (stands_by and remaining > len(members)):
                break
            if not switches(remaining, len(members), *self.pace.times()):
                break
            members.append(rank)
        joined = len(set(members) - set(before))
        self.switched += joined
        batches = range(self._formed, min(self._formed + len(members), self.batches))
        self.steps.append(Step(len(self.steps), batches, tuple(members), joined > 0))
        self._formed = batches.stop
