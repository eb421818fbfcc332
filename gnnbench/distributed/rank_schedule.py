"""A rank's part of an epoch: its shard of every batch's seeds, or the seeds of its partition."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import torch
from torch import Tensor, nn

from gnnbench.core.batch_choice import NO_BATCHES
from gnnbench.core.cell import Until
from gnnbench.core.job import Job
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.gradients import OverlappedReduce
from gnnbench.distributed.merge import BatchShard, RankEpoch, merge_ranks
from gnnbench.distributed.process_group import RankGroup, TrainerTeam
from gnnbench.distributed.rank_messages import JoinGroup
from gnnbench.distributed.rank_trainer import RankTrainer, rank_trainer
from gnnbench.distributed.shard_epoch import ShardEpoch, rank_seeds, seed_shard
from gnnbench.measure.allocated import private_bytes
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.rank_audit import RankAudit
from gnnbench.pipelines.schedule import DDP, FLAT, Schedule, Stages

if TYPE_CHECKING:
    from gnnbench.distributed.partitioned import RankPartition
    from gnnbench.features.spec import StoreSpec
    from gnnbench.sampling.stage import SamplerSpec, SamplerStage


def weights_digest(model: nn.Module) -> str:
    """Return a digest of a model's parameters, bit for bit."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def process_bytes(device: torch.device, stages: Stages) -> int:
    """Return this process's private memory: on a GPU the peak so far, on the host the current."""
    return stages.peak_bytes if device.type == "cuda" else private_bytes()


class OwnPart(Protocol):
    """A rank's part of an epoch."""

    def run(self, epoch: int, batches: list[Tensor]) -> None:
        """Run it; ``batches`` are the seeds of the whole epoch."""


class RankScheduleAudit(RankAudit):
    """Of a rank above 0: its own seeds. Rank 0 merges the results."""

    def __init__(self, schedule: RankSchedule) -> None:
        self._schedule = schedule

    def record_edges(self, enabled: bool) -> None:
        """Set whether shards of the next epochs have edges."""
        self._schedule.records_edges = enabled

    def own_seeds(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Return the rank's seeds of the batches in which it has any."""
        own = (rank_seeds(self._schedule, batch) for batch in batches)
        return [seeds for seeds in own if seeds.numel()]

    def sampled_per_seed(
        self, sampler: SamplerStage, batches: Sequence[Tensor]
    ) -> tuple[float, float] | None:
        """Return edges and nodes per seed if each rank has its own random numbers.

        The ranks then sample different edges for a node that two of them have.
        """
        ranks = self._schedule.ranks
        if sampler.exact or ranks == 1:
            return None
        fanouts, law = sampler.job.cell.fanouts, sampler.law
        shards: list[BatchShard] = []
        for number, batch in enumerate(batches):
            for rank in range(ranks):
                if (seeds := seed_shard(batch, rank, ranks)).numel():
                    sampled = sampler.sample(seeds, 0, number)
                    shard = BatchShard.of(sampled, record_edges=False, exact=False)
                    shards.append(shard.on_host(fanouts, law))
        merged = merge_ranks([RankEpoch(shards, "", "")])
        return merged.edges / merged.seeds, merged.nodes / merged.seeds


class RankSchedule(Schedule):
    """One rank's part of each epoch, batch by batch and phase by phase.

    ``group`` is set once all ranks have joined, ``partition`` if the graph is partitioned.
    ``broadcasts_state``: rank 0 sends its weights before an epoch, because another rank's differ.
    ``copied``: batches of the next epochs that are copied aside and checked. ``whole``: batches are
    not divided, and a loss is that of a rank's batch.
    """

    whole: ClassVar[bool] = False
    group: RankGroup | None = None
    partition: RankPartition | None = None
    broadcasts_state = True
    records_edges = False
    copied = NO_BATCHES

    @property
    def bytes_apart(self) -> int:
        """Peak of the private memory of the rank's other processes, in bytes."""
        return 0

    def __init__(self, rank: int, ranks: int, gradients: str = FLAT) -> None:
        self.rank, self.ranks, self._gradients = rank, ranks, gradients
        self._shards: list[BatchShard] = []
        self._trainer: RankTrainer | None = None
        self._sampler: SamplerStage | None = None
        self.rank_audit: RankAudit = RankScheduleAudit(self)

    def connect(self, sockets: Mapping[str, int]) -> None:
        """Take the additional sockets of the process: file descriptors by name."""

    def start(self, stages: Stages) -> None:
        """Take the stages, before the ranks join."""
        self._trainer = rank_trainer(stages)

    def join(self, peers: Peers, job: Job, message: JoinGroup) -> None:
        """Join the process group; all ranks are members on return."""
        kind = TrainerTeam if self.whole else RankGroup
        self.group = kind(self.rank, self.ranks, job.device, job.counts, peers.pulse)
        self.group.join(peers.store)
        if self._gradients == DDP and self._trainer is not None:
            model = self._trainer.model
            self.group.gradients = OverlappedReduce(self.group, model, self.whole)
        if self.partition is not None:
            self.partition.check_agreement()

    def sampler_spec(self, recipe_spec: SamplerSpec, built_spec: SamplerSpec) -> SamplerSpec:
        """Return the spec of the sampler that the rank needs, once it has joined."""
        return built_spec

    def store_spec(self, recipe_spec: StoreSpec, built_spec: StoreSpec) -> StoreSpec:
        """Return the spec of the feature store that the rank needs, once it has joined."""
        return built_spec

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the rank's part of every batch, starting from rank 0's weights."""
        assert self.group is not None
        trainer = self._trainer = rank_trainer(stages)
        self._sampler = stages.sampler
        running = self._own_part(self.group, stages, timeline, until)
        if trainer is None:
            running.run(epoch, batches)
            return
        if self.broadcasts_state:
            self.group.broadcast_state(trainer.state())
        trainer.group = self.group
        try:
            running.run(epoch, batches)
        finally:
            trainer.group = None

    def _own_part(
        self, group: RankGroup, stages: Stages, timeline: Timeline, until: Until
    ) -> OwnPart:
        """Return what runs the rank's part of the next epoch."""
        self._shards = []
        return ShardEpoch(self, group, stages, timeline, until, self._shards)

    def results(self, reason: str, seen: Sequence[bytes] = ()) -> object:
        """Return what the rank did since the last call, a ``RankEpoch``.

        ``reason`` is the fault that the audit found, ``seen`` the digests of the checked batches.
        """
        shards, self._shards = self._shards, []
        sampler = self._sampler
        assert sampler is not None
        fanouts, law = sampler.job.cell.fanouts, None if sampler.exact else sampler.law
        weights = "" if self._trainer is None else weights_digest(self._trainer.model)
        return RankEpoch([shard.on_host(fanouts, law) for shard in shards], reason, weights)

    def close(self) -> None:
        """Leave the group."""
        if self.group is not None:
            self.group.close()
            self.group = None
