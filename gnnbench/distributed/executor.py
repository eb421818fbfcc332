"""A rank's epoch in ``schedule=factored``, as a Sampler or as a Trainer.

GNNLab, sections 5.2 and 5.3. A Sampler without further batches continues as a standby Trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import (
    HANDED_BYTES,
    RANK_CACHED,
    RANK_DRAWN,
    RANK_TRAINED,
    SAMPLE_PARTS,
    Counts,
)
from gnnbench.core.errors import GnnbenchError, UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch, Sizes
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.bounded_queue import SlotAccess, SlotMemory
from gnnbench.distributed.factored_results import TrainedEpoch
from gnnbench.distributed.process_group import TrainerTeam
from gnnbench.distributed.rank_messages import JoinGroup
from gnnbench.distributed.rank_schedule import RankSchedule, RankScheduleAudit, weights_digest
from gnnbench.distributed.rank_trainer import rank_trainer
from gnnbench.distributed.scheduler import SchedulerChannel
from gnnbench.distributed.scheduler_messages import (
    BatchNumber,
    BatchWritten,
    NextBatch,
    RankFailed,
    RequestSlot,
)
from gnnbench.distributed.trainer_epoch import TrainerEpoch, timed_request
from gnnbench.features.cache import StaticCache
from gnnbench.features.marks import mark
from gnnbench.features.spec import StoreSpec
from gnnbench.kernels.lookup import IdLookup
from gnnbench.measure.named_timers import Spent
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import BufferLayout
from gnnbench.pipelines.schedule import FLAT, Stages
from gnnbench.sampling.stage import SamplerSpec

CHANNEL = "line"  # name of a rank's socket to the scheduler


@dataclass(frozen=True)
class JoinWithRole(JoinGroup):
    """``JoinGroup`` with the number of ranks that train: the first ones; the others sample.

    ``depth``, ``standby`` and ``marks`` are those of the spec.
    """

    trainers: int = 1
    depth: int = 1
    standby: bool = False
    marks: bool = False


class ExecutorAudit(RankScheduleAudit):
    """Batches are not divided: a rank answers for those that it trained on."""

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._executor = executor

    def own_seeds(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Return the seeds of the batches that the rank trained on, in that order."""
        return [batches[number] for number, _, _ in self._executor.trained]

    def trained_batches(self, batches: int) -> int:
        """Return on how many batches the rank trained."""
        return len(self._executor.trained)


class Executor(RankSchedule):
    """A Sampler or a Trainer, by the role that it joins with.

    ``channel`` leads to the scheduler. ``trained`` has number, sizes and loss of each batch that
    the rank trained on in the last epoch. ``last_step`` is its last training step of ``steps``.
    """

    group: TrainerTeam | None
    channel: SchedulerChannel
    roles: JoinWithRole
    slots: SlotAccess

    def __init__(
        self,
        rank: int,
        ranks: int,
        gradients: str = FLAT,
        sampler_store: Callable[[StoreSpec], StoreSpec] = lambda spec: spec,
    ) -> None:
        super().__init__(rank, ranks, gradients)
        self.rank_audit, self._sampler_store = ExecutorAudit(self), sampler_store
        self._marker: IdLookup | None = None  # a Sampler's, of the nodes that Trainers cache
        self._sample_times = Spent()
        self.trained: list[tuple[int, Sizes, Tensor | None]] = []
        self.last_step = self.steps = -1

    def start(self, stages: Stages) -> None:
        """Take the stages, whose cache the ranks agree on when they join."""
        super().start(stages)
        self._stages = stages

    def connect(self, sockets: Mapping[str, int]) -> None:
        """Open the channel to the scheduler."""
        self.channel = SchedulerChannel(Connection(sockets[CHANNEL]))

    def join(self, peers: Peers, job: Job, message: JoinGroup) -> None:
        """Join the other ranks; teams are the first ranks, as many as may train together."""
        assert isinstance(message, JoinWithRole)
        self.roles = message
        most = self.ranks if message.standby else message.trainers
        teams = tuple(range(max(message.trainers, 2), most + 1))
        self._counts: Counts = job.counts
        self.group = TrainerTeam(self.rank, self.ranks, job.device, job.counts, peers.pulse, teams)
        self.group.join(peers.store)
        self.slots, self.weights_access = SlotAccess(job.device), SlotAccess(job.device)
        job.counts.settled_by(partial(self._settle, job.counts))
        if message.marks:
            self._agree_on_cache(self.group, job)

    def _agree_on_cache(self, group: TrainerTeam, job: Job) -> None:
        """Have Samplers learn which nodes all Trainers cache.

        Ratios that are derived from free memory may differ: the first nodes of all count, as many
        as the smallest cache of a Trainer has. Raises ``GnnbenchError`` if Trainers cache others.
        """
        store, own = self._stages.store, torch.empty(0, dtype=torch.int64, device=job.device)
        if not is_sampler(self):
            assert isinstance(store, StaticCache)
            own, store.takes_marks = store.cached_ids, True
        rows = group.least(job.graph.num_nodes if is_sampler(self) else own.numel())
        ids = own[:rows].clone() if self.rank == 0 else own.new_empty(rows)
        group.broadcast(ids)
        if is_sampler(self):
            self._marker = IdLookup(job.graph.num_nodes, job.device)
            self._marker.remember(ids)
        elif not torch.equal(ids, own[:rows]):
            raise GnnbenchError(
                f"rank {self.rank} caches other nodes than rank 0, so that samplers cannot mark"
                " them; give schedule.marks=false, or a features.policy that ranks alike each time"
            )

    def _settle(self, counts: Counts) -> None:
        """Count a Sampler's times, which are read from the device only now."""
        for part, seconds in self._sample_times.take().items():
            counts.add("schedule", SAMPLE_PARTS[part], seconds, str(self.rank))

    def sampler_spec(self, recipe_spec: SamplerSpec, built_spec: SamplerSpec) -> SamplerSpec:
        """Return the recipe's spec for a Sampler: it needs the topology in its memory."""
        return recipe_spec if is_sampler(self) else built_spec

    def store_spec(self, recipe_spec: StoreSpec, built_spec: StoreSpec) -> StoreSpec:
        """Return a Sampler's store, which may be smaller than a Trainer's."""
        return self._sampler_store(recipe_spec) if is_sampler(self) else built_spec

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Sample, then perhaps stand by; or fetch and train."""
        assert self.group is not None
        self.trained, self._trainer = [], rank_trainer(stages)
        self.last_step = self.steps = -1
        samples = is_sampler(self)
        try:
            if samples:
                self._sample_batches(epoch, batches, stages, timeline)
            elif self._trainer is not None:
                self.group.use_team(self.roles.trainers)
                if self.broadcasts_state:
                    self.group.broadcast_state(self._trainer.state())
            if not samples or self.roles.standby:
                TrainerEpoch(self, self.group, stages, timeline, self.roles.depth).run()
        except BaseException:
            with suppress(Exception):  # so that no rank waits for this one
                self.channel.notify(RankFailed())
            raise
        finally:
            if self._trainer is not None:
                self._trainer.group = None
        self._counts.add("schedule", HANDED_BYTES, self.slots.written)
        self.slots.written = 0
        self._counts.add("schedule", RANK_TRAINED, len(self.trained), str(self.rank))
        cached = stages.store.cached()[0].shape[0] if isinstance(stages.store, StaticCache) else 0
        self._counts.add("schedule", RANK_CACHED, cached, str(self.rank))

    def _sample_batches(
        self, epoch: int, batches: list[Tensor], stages: Stages, timeline: Timeline
    ) -> None:
        """Sample as long as there are batches, and write each to its slot: S = G + M + C of GNNLab.

        Waiting for a slot belongs to no phase.
        """
        assert self.group is not None
        lane, sampled = f"rank {self.rank}", 0
        part = partial(self._sample_times.of, device=stages.sampler.job.device)
        while (number := self._next_batch()) is not None:
            with timeline.span("sample", number, lane):
                with part("draw"):
                    batch = stages.sampler.sample(batches[number], epoch, number)
                if not isinstance(batch, MiniBatch):
                    raise UnsupportedError(
                        "schedule=factored hands over batches of gnnbench's own blocks, not a"
                        f" {type(batch).__name__}; take another sampler, or schedule=serial"
                    )
                if self._marker is not None:
                    with part("mark"):
                        mark(batch, self._marker)
                layout = BufferLayout()
                with part("copy"):
                    slices = batch.mapped(layout.place)
            memory = timed_request(self, self.group, RequestSlot(number, layout.size))
            assert isinstance(memory, SlotMemory)
            with timeline.span("sample", number, lane), part("copy"):
                self.slots.write(layout, memory)
            self.channel.notify(BatchWritten(number, slices, layout.size))
            sampled += 1
        self._counts.add("schedule", RANK_DRAWN, sampled, str(self.rank))

    def _next_batch(self) -> int | None:
        answer = self.channel.request(NextBatch())
        assert isinstance(answer, BatchNumber)
        return answer.number

    def results(self, reason: str, seen: Sequence[bytes] = ()) -> object:
        """Return what the rank trained on since the last call, a ``TrainedEpoch``."""
        trained, self.trained = self.trained, []
        weights = ""
        if self._trainer is not None and 0 <= self.last_step == self.steps - 1:
            weights = weights_digest(self._trainer.model)
        return TrainedEpoch.of(trained, reason, weights, seen)

    def close(self) -> None:
        """Leave the group and the queue."""
        super().close()
        if hasattr(self, "slots"):
            self.slots.close()
            self.weights_access.close()


def is_sampler(executor: Executor) -> bool:
    """Whether the rank's role is that of a Sampler."""
    return executor.rank >= executor.roles.trainers
