"""A rank's part of one epoch: samples, loads and trains on its shard of each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.minibatch import Batch
from gnnbench.distributed.merge import BatchShard
from gnnbench.distributed.rank_trainer import RankTrainer, rank_trainer
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule import Stages

if TYPE_CHECKING:
    from gnnbench.distributed.process_group import RankGroup
    from gnnbench.distributed.rank_schedule import RankSchedule

# A batch's number in the epoch and the rank's shard of it, None if the rank has no seeds.
NumberedShard = tuple[int, Batch | None]


def seed_shard(batch: Tensor, rank: int, ranks: int) -> Tensor:
    """Return a rank's contiguous shard of a batch's seeds.

    The first shards are longer by one if the batch does not divide evenly. A shard is empty if
    there are more ranks than seeds.
    """
    return batch.tensor_split(ranks)[rank]


def rank_seeds(schedule: RankSchedule, batch: Tensor) -> Tensor:
    """Return the rank's seeds of a batch: its shard, or those that its partition owns."""
    if schedule.partition is not None:
        return schedule.partition.seeds(batch)
    return seed_shard(batch, schedule.rank, schedule.ranks)


@dataclass
class ShardEpoch:
    """An epoch as one rank runs it; ``shards`` receives what it sampled of each batch."""

    schedule: RankSchedule
    group: RankGroup
    stages: Stages
    timeline: Timeline
    until: Until
    shards: list[BatchShard]

    def run(self, epoch: int, batches: list[Tensor]) -> None:
        """Run all batches; ``batches`` are the seeds of all ranks."""
        stages, partition = self.stages, self.schedule.partition
        trainer = rank_trainer(stages)
        window = 1 if partition is not None or self.until is Until.SAMPLE else stages.window
        last: Batch | None = None
        first_loss = 0 if trainer is None else len(trainer.losses)
        for first in range(0, len(batches), window):
            group = self._sample(epoch, batches[first : first + window], first)
            if window > 1:
                with self.timeline.span("memory_io", first, self._lane):
                    group = self._reorder(group, first, last)
            sampled = [batch for _, batch in group if batch is not None]
            last = sampled[-1] if sampled else last
            index = 0  # into ``sampled``
            for position, (number, batch) in enumerate(group, first):
                rows = None
                has_seeds = batch is not None and batch.seeds.numel() > 0
                if self.until > Until.SAMPLE and (
                    has_seeds or (partition is not None and partition.loads_together)
                ):
                    with self.timeline.span("memory_io", position, self._lane):
                        if partition is not None:
                            rows = partition.load(batch)
                        else:
                            rows = stages.load(sampled, index)
                if trainer is not None:
                    with self.timeline.span("compute", position, self._lane):
                        self._train(trainer, batches[number], batch if has_seeds else None, rows)
                if batch is None or not has_seeds:
                    continue
                index += 1
                stages.keep(batch, rows)
                shard = BatchShard.of(batch, self.schedule.records_edges, stages.sampler.exact)
                self.shards.append(shard)
        if partition is not None:
            partition.count_traffic(self.group.counts)
        if trainer is not None:
            reduced = self.group.gradients.losses(trainer.losses[first_loss:])
            trainer.losses[first_loss:] = reduced

    @property
    def _lane(self) -> str:
        return f"rank {self.schedule.rank}"

    def _sample(self, epoch: int, batches: list[Tensor], first: int) -> list[NumberedShard]:
        """Sample the rank's shards of a window of batches, numbered from ``first``."""
        partition = self.schedule.partition
        sampler = self.stages.sampler if partition is None else partition
        shards: list[NumberedShard] = []
        for number, all_seeds in enumerate(batches, first):
            seeds = rank_seeds(self.schedule, all_seeds)
            batch = None
            # If ranks sample together, a rank without seeds takes part.
            if seeds.numel() or (partition is not None and partition.samples_together):
                with self.timeline.span("sample", number, self._lane):
                    batch = sampler.sample(seeds, epoch, number)
            shards.append((number, batch))
        return shards

    def _train(
        self, trainer: RankTrainer, all_seeds: Tensor, batch: Batch | None, rows: Tensor | None
    ) -> None:
        """Train on the rank's shard of a batch, None if it has no seeds."""
        self.group.gradients.begin(lambda: trainer.labels_at(all_seeds))
        if batch is None:
            trainer.losses.append(trainer.step_of_nothing())
        else:
            assert rows is not None
            trainer.step(batch, rows)

    def _reorder(
        self, group: list[NumberedShard], first: int, last: Batch | None
    ) -> list[NumberedShard]:
        """Return a window's shards in the order that rank 0 chooses by its own shards.

        The host waits for that order. Rank 0 has seeds of every batch.
        """
        if self.stages.order is None or self.stages.order.window == 1:
            return group
        order = torch.arange(first, first + len(group), device=self.group.device)
        if self.schedule.rank == 0:
            own = [batch for _, batch in group if batch is not None]
            numbers = [batch.number for batch in self.stages.reorder(own, last)]
            order.copy_(torch.tensor(numbers))
        with self.group.pulse.waiting():
            dist.broadcast(order, 0)
        return [group[number - first] for number in order.tolist()]
