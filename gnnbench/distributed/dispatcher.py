"""Rank 0's coordination for ``schedule=factored``: owns the queue and the scheduler."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection

from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import (
    BUFFER_BYTES,
    MEASURED_PHASE,
    QUEUE_MOST,
    SAMPLERS,
    SWITCHES,
    TRAINERS,
    UPDATES,
    Counts,
)
from gnnbench.core.job import Job
from gnnbench.distributed.allocation import Allocation, allocate
from gnnbench.distributed.bounded_queue import QueueSlots
from gnnbench.distributed.executor import CHANNEL, Executor, JoinWithRole
from gnnbench.distributed.factored_results import TrainedEpoch
from gnnbench.distributed.merge import MergedEpoch
from gnnbench.distributed.rank_messages import PhaseTimes, expect
from gnnbench.distributed.rank_monitor import RankLoss
from gnnbench.distributed.scheduler import Scheduler, SchedulerChannel, channel_pair
from gnnbench.distributed.step_coordination import StepCoordination
from gnnbench.distributed.tasks import TaskQueue, TrainingPace
from gnnbench.measure.timeline import Span
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.utilization import count_busy, count_imbalance


class Dispatcher(StepCoordination):
    """Divides the ranks into samplers and trainers, and distributes the batches of each epoch.

    ``own`` is rank 0's executor, a trainer. There are as many ranks as ``requested`` samplers and
    trainers; with ``auto`` they are divided by a measurement. ``queue``, ``depth``, ``standby`` and
    ``profit`` are fields of the spec.
    """

    def __init__(
        self, job: Job, own: Executor, requested: Allocation, auto: bool, queue: int, depth: int,
        standby: bool, profit: str,
    ) -> None:  # fmt: skip
        self._job, self._own, self._requested, self._auto = job, own, requested, auto
        self._depth, self._standby, self._profit = depth, standby, profit
        self._pace = TrainingPace()
        self._channels: dict[int, Connection[object, object]] = {}
        self._slots = QueueSlots(queue)
        self._abort: Callable[[], None] = lambda: None
        self.scheduler = Scheduler(self._channels, self._slots, lambda: self._abort())
        self._phase_times: PhaseTimes | None = None
        super().__init__()
        self._channels[0], theirs = channel_pair()
        own.channel = SchedulerChannel(Connection(theirs.detach()))

    def abort_with(self, abort: Callable[[], None]) -> None:
        """Set what aborts collectives when an epoch cannot be finished."""
        self._abort = abort

    def sockets(self, rank: int) -> dict[str, socket.socket]:
        """Return the rank's end of its channel to the scheduler."""
        self._channels[rank], theirs = channel_pair()
        return {CHANNEL: theirs}

    def join_message(self, measure: Callable[[int], PhaseTimes]) -> JoinWithRole:
        """Return the number of trainers, by a measurement if the allocation is automatic."""
        allocation = self._measured_allocation(measure) if self._auto else self._requested
        return JoinWithRole(allocation.trainers, self._depth, self._standby)

    def _measured_allocation(self, measure: Callable[[int], PhaseTimes]) -> Allocation:
        """Measure an epoch of the last rank, which has all stages. Rank 0 trains in any case."""
        ranks = self._own.ranks
        times = self._phase_times = measure(ranks - 1)
        fetch_s, compute_s = times.memory_io_s, times.compute_s
        train_s = max(fetch_s, compute_s) if self._depth else fetch_s + compute_s
        allocation = allocate(ranks, times.sample_s, train_s)
        return allocation if allocation.trainers else Allocation(ranks - 1, 1)

    def epoch(
        self, batches: list[Tensor], stages: Stages, until: Until, records_edges: bool
    ) -> AbstractContextManager[None]:
        """Return a context in which the scheduler distributes the batches."""
        return self._scheduled(batches, stages, until, records_edges)

    @contextmanager
    def _scheduled(
        self, batches: list[Tensor], stages: Stages, until: Until, records_edges: bool
    ) -> Iterator[None]:
        roles = self._own.roles
        trainers, ranks = roles.trainers, self._own.ranks
        tasks = TaskQueue(
            len(batches), len(self._slots), range(trainers, ranks), range(trainers),
            roles.standby, self._pace, self._profit,
        )  # fmt: skip
        self.scheduler.begin(tasks)
        with self.recorded(batches, stages, records_edges):
            try:
                yield
            finally:
                self.scheduler.end()
        self.steps = tasks.steps
        counts = self._job.counts
        counts.add("schedule", SAMPLERS, ranks - trainers)
        counts.add("schedule", TRAINERS, trainers)
        counts.add("schedule", QUEUE_MOST, tasks.most_waiting)
        counts.add("schedule", BUFFER_BYTES, self._slots.bytes)
        counts.add("schedule", SWITCHES, tasks.switched)
        if until is Until.COMPUTE:
            counts.add("schedule", UPDATES, len(tasks.steps))
        for phase, measure in MEASURED_PHASE.items() if self._phase_times else ():
            counts.add("schedule", measure, getattr(self._phase_times, f"{phase}_s"))

    def merge(self, epoch: int, results: Sequence[object]) -> MergedEpoch:
        """Merge the results of all ranks, and verify the steps of a verification epoch."""
        return self.merge_whole(epoch, expect(TrainedEpoch, results), self._job.counts)

    def count(self, counts: Counts, spans_by_rank: list[list[Span]]) -> None:
        """Count times by rank, and imbalance by role: samplers do not load, trainers not sample."""
        trainers = self._own.roles.trainers
        count_busy(counts, spans_by_rank)
        roles = {"samplers": range(trainers, self._own.ranks), "trainers": range(trainers)}
        count_imbalance(counts, spans_by_rank, roles)

    def on_loss(self, loss: RankLoss) -> None:
        """Fail the requests of ranks that wait for the scheduler."""
        self.scheduler.fail(loss.hang or f"rank {loss.rank} has ended")

    def close(self) -> None:
        """End the scheduler, close all channels and free the queue."""
        self.scheduler.end()
        self._own.channel.close()
        for connection in self._channels.values():
            connection.close()
        with suppress(OSError):
            self._slots.close()
