"""A Trainer's epoch in ``schedule=factored``: fetches shares of steps ahead, and trains on them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from gnnbench.core.counters import RANK_WAIT, STALE_MOST, STALE_UPDATES
from gnnbench.core.minibatch import Batch
from gnnbench.core.peer_failure import LostError
from gnnbench.distributed.bounded_queue import SlotMemory
from gnnbench.distributed.rank_trainer import RankTrainer, rank_trainer
from gnnbench.distributed.scheduler_messages import (
    BatchTrained,
    EpochDone,
    NextShare,
    RankFailed,
    SlotReleased,
    StepShare,
)
from gnnbench.distributed.shared_weights import SharedWeights
from gnnbench.features.marks import MISSED
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule import Stages

if TYPE_CHECKING:
    from gnnbench.distributed.executor import Executor
    from gnnbench.distributed.process_group import RankGroup
    from gnnbench.pipelines.streams import Mark


def timed_request(rank: Executor, group: RankGroup, message: object) -> object:
    """Return the scheduler's answer; counts the time as waiting for the queue."""
    began = time.perf_counter()
    with group.pulse.waiting():
        answer = rank.channel.request(message)
    group.counts.add("schedule", RANK_WAIT, time.perf_counter() - began, str(rank.rank))
    return answer


@dataclass
class FetchedShare:
    """A share of a step with its batch, None if it has none.

    ``loaded`` is reached when the rows are loaded, ``done`` when nothing reads them any more.
    """

    share: StepShare
    batch: Batch | None = None
    rows: Tensor | None = None
    loaded: Mark = None
    done: Mark = None


class TrainerEpoch:
    """Fetches shares on a thread and trains on the caller's; with a depth of 0 one by one.

    On a GPU fetching has its own stream, which frees its memory after waiting for the readers, as
    in ``gnnbench.pipelines.prefetch_epoch``.
    """

    def __init__(
        self,
        rank: Executor,
        group: RankGroup,
        stages: Stages,
        timeline: Timeline,
        depth: int,
    ) -> None:
        self._rank, self._group = rank, group
        self._stages, self._timeline = stages, timeline
        self._depth = depth
        self._lane = f"rank {rank.rank}"
        self._items: list[FetchedShare] = []
        self._training_error: Exception | None = None
        self._weights: SharedWeights | None = None
        self._address: SlotMemory | None = None  # of the weights that all ranks share

    def run(self) -> None:
        """Train on all shares. Raises the first error of either thread."""
        try:
            self._run()
            if self._address is not None:
                self._end_shared(self._address)
        finally:
            if self._weights is not None:
                self._weights.close()

    def _run(self) -> None:
        from gnnbench.pipelines.streams import current_stream, side_stream
        from gnnbench.pipelines.threads import Progress

        device = self._stages.sampler.job.device
        self._compute = current_stream(device)
        if not self._depth:
            self._fetching = self._compute
            for item in self._fetched():
                self._train(item)
            return
        self._progress = Progress()
        self._fetching = side_stream(device, "memory_io")
        self._fetching.wait_for(self._compute.mark())
        try:
            self._progress.run(self._train_all, self._fetch_all)
        except LostError:
            if self._training_error is not None:  # by which the other thread lost the scheduler
                raise self._training_error from None
            raise
        finally:
            with suppress(RuntimeError):  # a device that has failed accepts no more work
                self._compute.wait_for(self._fetching.mark())

    def _fetch_all(self) -> None:
        with self._fetching.entered():
            for _ in self._fetched():
                self._progress.note("loaded")
            self._progress.note("loaded")

    def _train_all(self) -> None:
        try:
            position = 0
            while True:
                self._progress.reach("loaded", position + 1)
                if position == len(self._items):
                    return
                self._train(self._items[position])
                self._progress.note("trained")
                position += 1
        except Exception as error:
            self._training_error = error
            with suppress(Exception):  # the other thread may wait for the scheduler
                self._rank.channel.notify(RankFailed())
            raise

    def _fetched(self) -> Iterator[FetchedShare]:
        """Yield the rank's shares of steps, fetched, as long as there are any."""
        while True:
            if (last := len(self._items) - self._depth - 1) >= 0:
                if self._depth:
                    self._progress.reach("trained", last + 1)
                    self._fetching.wait_for(self._items[last].done)
                self._items[last].batch = self._items[last].rows = None
            share = timed_request(self._rank, self._group, NextShare())
            if isinstance(share, EpochDone):
                self._rank.steps, self._address = share.steps, share.weights
                return
            assert isinstance(share, StepShare)
            item = FetchedShare(share)
            if share.batch is not None:
                self._fetch(item)
            self._items.append(item)
            yield item

    def _fetch(self, item: FetchedShare) -> None:
        """Copy a batch out of its slot and load its rows: E, as GNNLab counts it."""
        share, rank = item.share, self._rank
        assert share.batch is not None and share.written is not None and share.memory is not None
        lane = f"{self._lane} {self._fetching.name}".rstrip()
        with self._timeline.span("memory_io", share.batch, lane):
            written = share.written
            batch = rank.slots.take(written.slices, written.size, share.memory, on_host=(MISSED,))
            rank.channel.notify(SlotReleased(share.batch))
            assert self._stages.store is not None
            item.batch, item.rows = batch, self._stages.store.load(batch)
        item.loaded = self._fetching.mark()

    def _train(self, item: FetchedShare) -> None:
        share, trainer = item.share, rank_trainer(self._stages)
        loss: Tensor | None = None
        if item.batch is not None:
            self._compute.wait_for(item.loaded)
        if trainer is not None:
            number = -1 if share.batch is None else share.batch
            with self._timeline.span("compute", number, self._lane):
                loss = self._step(trainer, item)
        if item.batch is not None and share.batch is not None:
            self._stages.keep(item.batch, item.rows)
            self._rank.trained.append((share.batch, item.batch.sizes(), loss))
        item.done = self._compute.mark()
        self._rank.last_step = share.step
        if share.weights is not None:
            self._rank.channel.notify(BatchTrained())

    def _step(self, trainer: RankTrainer, item: FetchedShare) -> Tensor | None:
        group, share = self._group, item.share
        if share.weights is not None:
            return self._step_with_shared(trainer, item, share.weights)
        trainer.group = group if share.members > 1 else None
        if share.members > 1:
            group.use_team(share.members)
            if share.joins:
                group.broadcast_state(trainer.state())
        if item.batch is None:
            trainer.step_of_nothing()
            return None
        assert item.rows is not None
        trainer.step(item.batch, item.rows)
        return trainer.losses[-1]

    def _step_with_shared(self, trainer: RankTrainer, item: FetchedShare, at: SlotMemory) -> Tensor:
        """Train on a batch alone, and exchange weights with the other ranks."""
        weights = self._shared(trainer, at)
        assert item.batch is not None and item.rows is not None
        trainer.step(item.batch, item.rows)
        weights.exchange()
        return trainer.losses[-1]

    def _shared(self, trainer: RankTrainer, at: SlotMemory) -> SharedWeights:
        """Return the shared weights; the first call of an epoch reads them."""
        if self._weights is None:
            parameters = list(trainer.model.parameters())
            access, pulse = self._rank.weights_access, self._group.pulse
            self._weights = SharedWeights(access, at, parameters, pulse)
        return self._weights

    def _end_shared(self, at: SlotMemory) -> None:
        """Take the weights after the last update of all ranks, which are done with the epoch."""
        trainer, rank, counts = rank_trainer(self._stages), self._rank, self._group.counts
        assert trainer is not None
        weights = self._shared(trainer, at)
        weights.read()
        rank.last_step = rank.steps - 1
        counts.add("schedule", STALE_UPDATES, sum(weights.stale), str(rank.rank))
        counts.add("schedule", STALE_MOST, max(weights.stale, default=0), str(rank.rank))
