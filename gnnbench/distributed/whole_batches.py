"""``schedule.batches=whole``: each rank trains on whole batches of its own.

Batch i of the epoch is on rank i mod N, and update u has the batches uN to uN + N - 1: the updates
of ``schedule=factored`` with N trainers. Public code cuts the shuffled training nodes into one
contiguous chunk per rank instead, and each chunk into batches (DGL's ``DataLoader`` with
``use_ddp``); it repeats nodes where the chunks would differ in size. Both give a rank random
batches. Here the batches of all ranks are those of one process, and no node is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import zip_longest
from typing import ClassVar

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import UPDATES, Counts
from gnnbench.core.job import Job
from gnnbench.distributed.factored_results import TrainedEpoch
from gnnbench.distributed.merge import MergedEpoch
from gnnbench.distributed.process_group import RankGroup
from gnnbench.distributed.producer_client import ProducerClient
from gnnbench.distributed.producer_spec import ProducerSpec, build_message
from gnnbench.distributed.producer_start import start as start_producer
from gnnbench.distributed.rank_messages import expect
from gnnbench.distributed.rank_schedule import (
    OwnPart,
    RankSchedule,
    RankScheduleAudit,
    weights_digest,
)
from gnnbench.distributed.step_coordination import StepCoordination
from gnnbench.distributed.tasks import TrainingStep
from gnnbench.distributed.whole_epoch import (
    ProducedBatchEpoch,
    Trained,
    WholeBatchEpoch,
    num_updates,
    own_numbers,
)
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import ConsumerBuffer
from gnnbench.pipelines.rank_audit import RankAudit
from gnnbench.pipelines.schedule import FLAT, Stages

BUFFERS = 2  # ping-pong buffers of PyTorch-Direct


class WholeBatchAudit(RankScheduleAudit):
    """A rank's own batches, which one process would run in the same way."""

    def __init__(self, schedule: WholeBatchSchedule) -> None:
        super().__init__(schedule)
        self._rank, self._ranks = schedule.rank, schedule.ranks

    def own_numbers(self, batches: int) -> range:
        """Return the numbers of the rank's batches."""
        return own_numbers(batches, self._rank, self._ranks)

    def own_seeds(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Return the seeds of the rank's batches."""
        return [batches[number] for number in self.own_numbers(len(batches))]

    def trained_batches(self, batches: int) -> int:
        """Return on how many batches the rank has to train."""
        return len(self.own_numbers(batches))

    sampled_per_seed = RankAudit.sampled_per_seed  # each batch is sampled by one rank


class WholeBatchSchedule(RankSchedule):
    """One rank's batches of each epoch, phase by phase, or trained on while ``producer`` gathers
    the next ones."""

    _client: ProducerClient[ConsumerBuffer] | None

    whole: ClassVar[bool] = True

    def __init__(
        self, rank: int, ranks: int, gradients: str = FLAT, producer: ProducerSpec | None = None
    ) -> None:
        super().__init__(rank, ranks, gradients)
        self._trained: list[Trained] = []
        self.rank_audit = WholeBatchAudit(self)
        self._producer, self._client = producer, None

    def start(self, stages: Stages) -> None:
        """Take the stages, and start the rank's producer if it has one."""
        super().start(stages)
        job = stages.sampler.job
        if self._producer is None or job.cell.goes_until is Until.SAMPLE or self._client:
            return
        threads = torch.get_num_threads()
        if self.rank == 0:  # which has those of all ranks until an epoch begins
            threads = max(threads // self.ranks, 1)
        message = build_message(self._producer, job, BUFFERS, threads)
        buffers = [ConsumerBuffer(job.device) for _ in range(BUFFERS)]
        started = start_producer(self._producer.share)
        self._client = ProducerClient(started, buffers, "the producer", message)
        assert job.peers is not None
        self._client.await_built(job.peers.pulse.moves)

    @property
    def bytes_apart(self) -> int:
        """Peak of the private memory of the rank's other processes."""
        return 0 if self._client is None else self._client.peak_bytes

    def close(self) -> None:
        """End the rank's producer, and leave the group."""
        if self._client is not None:
            self._client.close()
        super().close()

    def _own_part(
        self, group: RankGroup, stages: Stages, timeline: Timeline, until: Until
    ) -> OwnPart:
        """Return what runs the rank's batches of the next epoch."""
        self._trained = []
        parts = (self.rank, self.ranks, group, stages, timeline, until, self._trained)
        if self._client is None:
            return WholeBatchEpoch(*parts)
        return ProducedBatchEpoch(*parts, self._client)

    def results(self, reason: str, seen: Sequence[bytes] = ()) -> object:
        """Return what the rank trained on since the last call, a ``TrainedEpoch``."""
        trained, self._trained = self._trained, []
        weights = "" if self._trainer is None else weights_digest(self._trainer.model)
        return TrainedEpoch.of(trained, reason, weights, seen)


class WholeBatchCoordination(StepCoordination):
    """Merges the batches of ``ranks``; an update has the next batch of each."""

    def __init__(self, job: Job, ranks: int) -> None:
        super().__init__()
        self._job, self._ranks = job, ranks

    def epoch(
        self, batches: list[Tensor], stages: Stages, until: Until, records_edges: bool
    ) -> AbstractContextManager[None]:
        """Return a context that keeps what a verification needs, and counts the updates."""
        return self._counted(batches, stages, until, records_edges)

    @contextmanager
    def _counted(
        self, batches: list[Tensor], stages: Stages, until: Until, records_edges: bool
    ) -> Iterator[None]:
        with self.recorded(batches, stages, records_edges):
            yield
        if until is Until.COMPUTE:
            updates = num_updates(len(batches), self._ranks)
            self._job.counts.add("schedule", UPDATES, updates)

    def merge(self, epoch: int, results: Sequence[object]) -> MergedEpoch:
        """Merge the results of all ranks, and verify the updates of a verification epoch."""
        trained = expect(TrainedEpoch, results)
        by_rank = [[batch.number for batch in rank.batches] for rank in trained]
        members = tuple(range(self._ranks))
        self.steps = [
            TrainingStep(step, [n for n in numbers if n is not None], members, joins=False)
            for step, numbers in enumerate(zip_longest(*by_rank))
        ]
        counts: Counts = self._job.counts
        return self.merge_whole(epoch, trained, counts)
