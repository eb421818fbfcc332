"""A rank's part of an epoch with ``schedule.batches=whole``: trains on batches of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import SYNCHRONISATIONS
from gnnbench.core.minibatch import Batch, Sizes
from gnnbench.distributed.process_group import RankGroup
from gnnbench.distributed.producer_client import ProducerClient
from gnnbench.distributed.producer_messages import RequestDone
from gnnbench.distributed.rank_trainer import RankTrainer, rank_trainer
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import ConsumerBuffer
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.utilization import add_rows

# Number, sizes and loss of a batch; the loss is None if the epoch does not train.
Trained = tuple[int, Sizes, Tensor | None]


def own_numbers(batches: int, rank: int, ranks: int) -> range:
    """Return the numbers of a rank's batches: batch i of an epoch is on rank i mod ``ranks``."""
    return range(rank, batches, ranks)


def num_updates(batches: int, ranks: int) -> int:
    """Return the number of updates of an epoch; the last one may have fewer batches than ranks."""
    return -(-batches // ranks)


@dataclass
class WholeBatchEpoch:
    """An epoch as one rank runs it; ``trained`` receives its batches as they ran.

    Update u has the u-th batch of each rank. A rank that has none left reduces gradients of 0.
    Windows of order and store consist of the rank's own consecutive batches.
    """

    rank: int
    ranks: int
    group: RankGroup
    stages: Stages
    timeline: Timeline
    until: Until
    trained: list[Trained]

    def run(self, epoch: int, batches: list[Tensor]) -> None:
        """Run the rank's batches; ``batches`` are the seeds of the whole epoch."""
        stages = self.stages
        own = own_numbers(len(batches), self.rank, self.ranks)
        stages.sampler.expect(epoch, [batches[number] for number in own])
        window = 1 if self.until is Until.SAMPLE else stages.window
        last: Batch | None = None
        for first in range(0, len(own), window):
            sampled = [
                self._sample(epoch, batches[number], number)
                for number in own[first : first + window]
            ]
            if window > 1:
                with self.timeline.span("memory_io", own[first], self._lane):
                    sampled = stages.reorder(sampled, last)
                last = sampled[-1]
            for index, batch in enumerate(sampled):
                position = own[first + index]
                rows = None
                if self.until > Until.SAMPLE:
                    with self.timeline.span("memory_io", position, self._lane):
                        rows = stages.load(sampled, index)
                loss = self._train(position, batches, batch, rows)
                stages.keep(batch, rows)
                self.trained.append((batch.number, batch.sizes(), loss))
        self._finish(batches, len(own))

    @property
    def _lane(self) -> str:
        return f"rank {self.rank}"

    def _sample(self, epoch: int, seeds: Tensor, number: int) -> Batch:
        with self.timeline.span("sample", number, self._lane):
            return self.stages.sampler.sample(seeds, epoch, number)

    def _train(
        self, position: int, batches: Sequence[Tensor], batch: Batch, rows: Tensor | None
    ) -> Tensor | None:
        """Train on a batch in the update that batch ``position`` of the epoch belongs to."""
        trainer = rank_trainer(self.stages)
        if trainer is None:
            return None
        assert rows is not None
        with self.timeline.span("compute", position, self._lane):
            self._begin(trainer, batches, position // self.ranks)
            trainer.step(batch, rows)
        return trainer.losses[-1]

    def _finish(self, batches: Sequence[Tensor], done: int) -> None:
        """Take part in the last update if the rank has no batch for it."""
        trainer = rank_trainer(self.stages)
        if trainer is None:
            return
        for update in range(done, num_updates(len(batches), self.ranks)):
            with self.timeline.span("compute", -1, self._lane):
                self._begin(trainer, batches, update)
                trainer.step_of_nothing()

    def _begin(self, trainer: RankTrainer, batches: Sequence[Tensor], update: int) -> None:
        first = update * self.ranks

        def labels() -> Tensor:
            return trainer.labels_at(torch.cat(list(batches[first : first + self.ranks])))

        self.group.gradients.begin(labels)


@dataclass
class ProducedBatchEpoch(WholeBatchEpoch):
    """An epoch as one rank runs it: it trains on the batches of ``client``'s process.

    PyTorch-Direct, section 3.4: each GPU has a sampler, a producer and a consumer, and the
    consumers train together.
    """

    client: ProducerClient[ConsumerBuffer]

    def run(self, epoch: int, batches: list[Tensor]) -> None:
        """Train on the rank's batches as they arrive; ``batches`` are the seeds of all ranks."""
        own = own_numbers(len(batches), self.rank, self.ranks)
        if own:
            self.client.begin_epoch(epoch, [batches[number] for number in own], own)
            try:
                done = self._train_on_all(batches)
            except BaseException:
                self.client.stop()
                raise
            self.timeline.add(s._replace(lane=f"{self._lane} {s.lane}") for s in done.spans)
            add_rows(self.group.counts, done.counts)
            self.group.counts.add("schedule", SYNCHRONISATIONS, len(own), "consumer")
        self._finish(batches, len(own))

    def _train_on_all(self, batches: list[Tensor]) -> RequestDone:
        while not isinstance(received := self.client.receive(), RequestDone):
            message, buffer = received
            number = message.batch.number
            with self.timeline.span("memory_io", number, self._lane):
                batch, rows = buffer.batch(message)
            loss = self._train(number, batches, batch, rows)
            self.stages.keep(batch, rows)
            self.trained.append((number, batch.sizes(), loss))
            self.client.release(message.buffer)
        return received
