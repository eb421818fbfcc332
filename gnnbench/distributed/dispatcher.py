"""Rank 0 of ``schedule=factored``: a Trainer, which also keeps the queue and the desk."""

from __future__ import annotations

import math
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import (
    BUFFER_BYTES,
    MEASURED_PHASE,
    MEASURES,
    QUEUE_MOST,
    SAMPLERS,
    SWITCHES,
    TRAINERS,
    UPDATES,
)
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.distributed.allocation import Allocation, allocate
from gnnbench.distributed.bounded_queue import Places
from gnnbench.distributed.executor import LINE, Executor, Roles, Worked
from gnnbench.distributed.launcher import Leader
from gnnbench.distributed.merge import United
from gnnbench.distributed.ranks import Measure, Measured
from gnnbench.distributed.scheduler import Desk, Line, pair
from gnnbench.distributed.tasks import Pace, Step, Tasks
from gnnbench.distributed.watch import Loss
from gnnbench.measure.timeline import Span, Timeline
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.utilization import count_busy, count_imbalance

# How far off one process may be that takes the same steps, by device: in each batch's loss, and in
# the weights, as a share of the way that an epoch leads them. Sums are in another order: on a CPU
# that is 1e-7 and 1e-6 of 16 steps to nothing at all of 308. On a GPU atomics lead them apart, too,
# and Adam what is next to 0; one trainer's gradients left out are beyond that.
LOSS = {"cpu": 1e-4, "cuda": 1e-3}
WEIGHTS = {"cpu": 0.01, "cuda": 0.25}
ROUNDINGS, ROUNDED = 3, 4.0  # trainings from other rounding, and how many times their difference


class Dispatcher(Leader, Executor):
    """``Leader`` starts and ends the ranks and holds epochs together; what this rank does in one is
    ``Executor``'s, which the leader's ``super`` finds. Ranks are as many as ``wanted``, with
    ``auto`` divided otherwise; the rest are fields of the spec."""

    def __init__(
        self, job: Job, wanted: Allocation, auto: bool, queue: int, depth: int, standby: bool
    ) -> None:
        self._wanted, self._auto, self._depth, self._standby = wanted, auto, depth, standby
        self._pace = Pace()
        self._lines: dict[int, Connection] = {}
        self._places = Places(queue)
        self._desk = Desk(self._lines, self._places, self._abort)
        self._measured: Measured | None = None
        self._batches = 0
        self._looked: _Looked | None = None  # the last epoch, where every batch was looked at
        self.steps: list[Step] = []  # of the last epoch
        self._lines[0], own = pair()
        self.line = Line(Connection(own.detach()))
        super().__init__(job, wanted.samplers + wanted.trainers)

    def _more_sockets(self, rank: int) -> dict[str, socket.socket]:
        self._lines[rank], theirs = pair()
        return {LINE: theirs}

    def _join(self) -> Roles:
        found = self._allocated() if self._auto else self._wanted
        return Roles(found.trainers, self._depth, self._standby)

    def _allocated(self) -> Allocation:
        """By an epoch of the last rank, which has all stages. This rank trains in any case."""
        self._tell(Measure(self.ranks - 1))
        took: Measured = self._answers()[-1]
        self._measured = took
        fetch, train = took.memory_io_s, took.compute_s
        train_s = max(fetch, train) if self._depth else fetch + train
        found = allocate(self.ranks, took.sample_s, train_s)
        return found if found.trainers else Allocation(self.ranks - 1, 1)

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """All ranks run their parts, beside the desk that deals the batches."""
        self.ready()
        trainers = self.roles.trainers
        self._looked = None
        trainer: Any = stages.trainer
        before = trainer.kept() if self._looks and trainer is not None else None
        tasks = Tasks(
            len(batches), len(self._places), range(trainers, self.ranks), range(trainers),
            self.roles.standby, self._pace,
        )  # fmt: skip
        self._desk.begin(tasks)
        try:
            super().epoch(epoch, batches, stages, timeline, until)
        finally:
            self._desk.end()
        self._batches, self.steps = len(batches), tasks.steps
        if before is not None:
            self._looked = _Looked(batches, stages, before, weights_of(trainer))
        counts = self._job.counts
        counts.add("schedule", SAMPLERS, self.ranks - trainers)
        counts.add("schedule", TRAINERS, trainers)
        counts.add("schedule", QUEUE_MOST, tasks.most_waiting)
        counts.add("schedule", BUFFER_BYTES, self._places.bytes)
        counts.add("schedule", SWITCHES, tasks.switched)
        if until is Until.COMPUTE:
            counts.add("schedule", UPDATES, len(tasks.steps))
        for phase, measure in MEASURED_PHASE.items() if self._measured else ():
            counts.add("schedule", measure, getattr(self._measured, f"{phase}_s"))

    def united(self, epoch: int, reason: str) -> United:
        """As of any ranks; where a step of a verification epoch was of several batches its steps
        are taken again here, one batch after the other."""
        found = super().united(epoch, reason)
        if self._looked is None or found.reason or all(len(s.batches) < 2 for s in self.steps):
            return found
        counts = self._job.counts
        counted = counts.rows()
        fault = self._looked.fault(epoch, self.steps, found.losses or [])
        counts.clear()  # what this has fetched is no part of the epoch
        for stage, name, where, value in counted:
            counts.add(str(stage), MEASURES[str(name)], float(value), str(where))
        return replace(found, reason=fault)

    def _tell_of(self, ranks: list[list[Span]]) -> None:
        """Samplers fetch nothing and Trainers draw nothing: how uneven they are is told by role."""
        counts, trainers = self._job.counts, self.roles.trainers
        count_busy(counts, ranks)
        roles = {"samplers": range(trainers, self.ranks), "trainers": range(trainers)}
        count_imbalance(counts, ranks, roles)

    def _unite(self, ranks: list[Any]) -> United:
        return unite(ranks, self._batches)

    def _lost(self, loss: Loss) -> None:
        super()._lost(loss)
        self._desk.lose(loss.why or f"rank {loss.rank} has ended")

    def _leave(self) -> None:
        try:
            super()._leave()
        finally:
            self._release()

    def _release(self) -> None:
        self._desk.end()
        self.line.close()
        for connection in self._lines.values():
            connection.close()
        with suppress(OSError):
            self._places.close()


@dataclass
class _Looked:
    """What a verification epoch was of: its batches, all that training changes as it was before,
    and the weights after."""

    batches: list[Tensor]
    stages: Stages
    before: list[Tensor]
    after: Tensor

    def fault(self, epoch: int, steps: Sequence[Step], told: Sequence[float]) -> str:
        """Whether one process that takes the same steps learns otherwise than the ranks did, whose
        losses of the batches are ``told``.

        Where it seems to, the process takes the steps again from weights that differ by rounding:
        a difference that rounding alone leads to is no fault.
        """
        losses, weights = self._take(epoch, steps)
        if sorted(losses) != list(range(len(told))):
            return f"took steps of {len(losses)} batches, and tells losses of {len(told)}"
        if not self._difference(losses, weights, told, []):
            return ""
        others = [self._take(epoch, steps, seed) for seed in range(1, ROUNDINGS + 1)]
        return self._difference(losses, weights, told, others)

    def _take(
        self, epoch: int, steps: Sequence[Step], jitter: int = 0
    ) -> tuple[dict[int, float], Tensor]:
        """Losses of the batches, by number, and the last weights of one process that takes the
        steps, from weights of that jitter."""
        trainer: Any = self.stages.trainer
        assert self.stages.store is not None
        trainer.restore(self.before)
        self._first = weights_of(trainer)
        if jitter:
            trainer.jitter(jitter)
        losses: dict[int, float] = {}
        self.stages.store.forget()
        for step in steps:
            found = trainer.learn_in_one(self._batches_of(epoch, step))
            losses |= dict(zip(step.batches, found, strict=True))
        return losses, weights_of(trainer)

    def _difference(
        self,
        losses: dict[int, float],
        weights: Tensor,
        told: Sequence[float],
        others: Sequence[tuple[dict[int, float], Tensor]],
    ) -> str:
        """The first difference that is neither within the bounds nor explained by ``others``."""
        device = self.stages.sampler.job.device.type
        for number, loss in enumerate(told):
            right = losses[number]
            allowed = max(
                LOSS[device] * abs(right),
                *(ROUNDED * abs(other[number] - right) for other, _ in others),
                0.0,
            )
            if abs(loss - right) > allowed or math.isnan(loss) != math.isnan(right):
                return (
                    f"batch {number + 1} has a loss of {loss:.5g} where one process that takes the"
                    f" same steps has {right:.5g}"
                )
        way = (self.after - self._first).norm()
        share = float((weights - self.after).norm() / way)
        rounded = [float((weights - other).norm() / way) for _, other in others]
        if not share <= max(WEIGHTS[device], *(ROUNDED * one for one in rounded), 0.0):
            return (
                f"led the weights {share:.1%} of their way off where one process that takes its"
                " steps leads them"
            )
        return ""

    def _batches_of(self, epoch: int, step: Step) -> Iterator[tuple[Batch, Tensor]]:
        assert self.stages.store is not None
        for number in step.batches:
            batch = self.stages.sampler.sample(self.batches[number], epoch, number)
            yield batch, self.stages.store.load(batch)


def weights_of(trainer: Any) -> Tensor:
    """A copy of all weights of a trainer's model, one after the other."""
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def unite(ranks: list[Worked], batches: int) -> United:
    """What the ranks trained on in an epoch of ``batches``, put together: each once, and by one."""
    reason = next((f"rank {n}: {r.reason}" for n, r in enumerate(ranks) if r.reason), "")
    times = Counter(one.number for rank in ranks for one in rank.batches)
    for number in range(batches):
        if times[number] != 1 and not reason:
            reason = f"batch {number + 1} was trained on {times[number]} times in the epoch"
    if other := sorted(set(times) - set(range(batches))):
        reason = reason or f"batch {other[0] + 1} is none of the epoch's {batches}"
    if len({r.weights for r in ranks if r.weights}) > 1:
        reason = reason or "the ranks ended the epoch with different weights"
    ran = [one for rank in ranks for one in rank.batches]
    losses = [one.loss for one in sorted(ran, key=lambda r: r.number) if one.loss is not None]
    return United(
        len(ran),
        sum(one.seeds for one in ran),
        sum(one.edges for one in ran),
        sum(one.nodes for one in ran),
        0, 0, reason,
        seen=[digest for rank in ranks for digest in rank.seen],
        losses=losses or None,
    )  # fmt: skip
