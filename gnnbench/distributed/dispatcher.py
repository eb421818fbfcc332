"""Rank 0's coordination for ``schedule=factored``: owns the queue and the scheduler."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

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
from gnnbench.distributed.async_tasks import AsyncTaskQueue
from gnnbench.distributed.bounded_queue import QueueSlots, SlotMemory
from gnnbench.distributed.executor import CHANNEL, Executor, JoinWithRole
from gnnbench.distributed.factored_results import TrainedEpoch
from gnnbench.distributed.merge import MergedEpoch
from gnnbench.distributed.rank_messages import PhaseTimes, expect
from gnnbench.distributed.rank_monitor import RankLoss
from gnnbench.distributed.rank_trainer import rank_trainer
from gnnbench.distributed.scheduler import Scheduler, SchedulerChannel, channel_pair
from gnnbench.distributed.shared_weights import begin_epoch, shared_size
from gnnbench.distributed.step_coordination import StepCoordination
from gnnbench.distributed.tasks import TaskQueue, TrainingPace
from gnnbench.measure.timeline import Span
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.utilization import count_busy, count_imbalance

if TYPE_CHECKING:
    from gnnbench.distributed.factored import Factored


class Dispatcher(StepCoordination):
    """Divides the ranks into samplers and trainers, and distributes the batches of each epoch.

    ``own`` is rank 0's executor, a trainer. There are as many ranks as the spec has samplers and
    trainers; with an automatic allocation they are divided by a measurement.
    """

    def __init__(self, job: Job, own: Executor, spec: Factored) -> None:
        self._job, self._own, self._spec = job, own, spec
        self._pace = TrainingPace()
        self._channels: dict[int, Connection[object, object]] = {}
        self._slots, self._weights = QueueSlots(spec.queue), QueueSlots(1)
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
        spec = self._spec
        allocation = Allocation(spec.samplers, spec.trainers)
        if spec.is_measured:
            allocation = self._measured_allocation(measure)
        return JoinWithRole(allocation.trainers, spec.depth, spec.standby, spec.marks)

    def _measured_allocation(self, measure: Callable[[int], PhaseTimes]) -> Allocation:
        """Measure an epoch of the last rank, which has all stages. Rank 0 trains in any case."""
        ranks = self._own.ranks
        times = self._phase_times = measure(ranks - 1)
        fetch_s, compute_s = times.memory_io_s, times.compute_s
        train_s = max(fetch_s, compute_s) if self._spec.depth else fetch_s + compute_s
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
        weights = self._shared_weights(stages)
        tasks = self._task_queue(
            len(batches), range(trainers, ranks), range(trainers), weights is not None
        )
        self.scheduler.begin(tasks, weights)
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

    def _task_queue(
        self, batches: int, samplers: range, trainers: range, is_async: bool
    ) -> TaskQueue:
        spec, slots = self._spec, len(self._slots)
        if is_async:
            return AsyncTaskQueue(
                batches, slots, samplers, trainers, spec.staleness, spec.standby, self._pace,
                spec.profit,
            )  # fmt: skip
        return TaskQueue(batches, slots, samplers, trainers, spec.standby, self._pace, spec.profit)

    def _shared_weights(self, stages: Stages) -> SlotMemory | None:
        """Write the weights that ranks share in the next epoch; None: they share none."""
        trainer = rank_trainer(stages)
        if not self._spec.staleness or trainer is None:
            return None
        parameters = list(trainer.model.parameters())
        address = self._weights.allocate(0, shared_size(parameters))
        begin_epoch(self._weights.memory(0), parameters)
        return address

    def merge(self, epoch: int, results: Sequence[object]) -> MergedEpoch:
        """Merge the results of all ranks, and verify the steps of a verification epoch.

        Asynchronous updates depend on the ranks' pace, so that no process can take them again.
        """
        if self._spec.staleness:
            self.verification = None
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
            self._weights.close()
