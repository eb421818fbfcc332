"""What each rank of ``schedule=factored`` does in an epoch: a Sampler's part or a Trainer's.

GNNLab, sections 5.2 and 5.3. A Sampler that has nothing left to draw goes on as a standby Trainer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import HANDED_BYTES, RANK_DRAWN, RANK_TRAINED, RANK_WAIT, Counts
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch, Sizes
from gnnbench.core.peer_failure import LostError
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.bounded_queue import Shelf
from gnnbench.distributed.process_group import Group
from gnnbench.distributed.ranks import Join, Part, weights_of
from gnnbench.distributed.scheduler import Draw, Drawn, End, Full, GiveUp, Line, Share, Taken, Want
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import Layout
from gnnbench.pipelines.schedule import FLAT, Stages
from gnnbench.sampling.stage import SamplerSpec

LINE = "line"  # the socket of a rank to the desk


@dataclass(frozen=True)
class Roles(Join):
    """``Join``, and how many of the ranks train: the first ones; the others sample.

    ``depth`` and ``standby`` are those of the spec.
    """

    trainers: int = 1
    depth: int = 1
    standby: bool = False


class Team(Group):
    """The ranks that train in a step, the first so many; losses stay those of each one's batch."""

    def average(self, parameters: Sequence[Tensor], loss: Tensor, labelled: Tensor) -> Tensor:
        """As of all; returns ``loss``."""
        super().average(parameters, loss, labelled)
        return loss


@dataclass(frozen=True)
class Trained:
    """What is known of a batch that a rank trained on: numbers, each edge and node counted once."""

    number: int
    seeds: int
    edges: int
    nodes: int
    loss: float | None = None


@dataclass(frozen=True)
class Worked:
    """What a rank trained on in an epoch. ``weights``: a digest, "" where it missed the last step;
    ``seen``: of each batch the digest of its edges, where they were looked at."""

    batches: list[Trained]
    reason: str
    weights: str
    seen: list[bytes] = field(default_factory=list)


@dataclass
class _Item:
    """A part of a step, fetched; ``batch`` None: there is none. ``loaded`` is passed when its rows
    are there, ``done`` when nobody reads them any more."""

    share: Share
    batch: Batch | None = None
    rows: Tensor | None = None
    loaded: Any = None
    done: Any = None


class Executor(Part):
    """A Sampler or a Trainer, as ``Roles`` say, at the end of a ``line`` to the desk."""

    group: Team | None
    line: Line
    roles: Roles

    def __init__(self, rank: int, ranks: int, gradients: str = FLAT) -> None:
        super().__init__(rank, ranks, gradients)
        self._ran: list[tuple[int, Sizes, Tensor | None]] = []
        self._shelf: Shelf | None = None
        self._last_step = self._steps = -1

    def connect(self, sockets: Mapping[str, int]) -> None:
        """The line to the desk."""
        self.line = Line(Connection(sockets[LINE]))

    @property
    def samples(self) -> bool:
        """Whether it is a Sampler."""
        return self.rank >= self.roles.trainers

    def meet(self, peers: Peers, job: Job, word: Join) -> None:
        """Join the others; teams are the first ranks, as many as may train together."""
        assert isinstance(word, Roles)
        self.roles = word
        most = self.ranks if word.standby else word.trainers
        teams = range(max(word.trainers, 2), most + 1)
        self._counts: Counts = job.counts
        self.group = Team(
            self.rank, self.ranks, job.device, job.counts, peers.pulse, tuple(teams)
        )  # fmt: skip
        self.group.meet(peers.store)
        self._shelf = Shelf(job.device)

    def draws_by(self, asked: SamplerSpec, built: SamplerSpec) -> SamplerSpec:
        """A Sampler has the topology; its role may be new to it."""
        return asked if self.samples else built

    def parts(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """The seeds of the batches that it trained on, in that order."""
        return [batches[number] for number, _, _ in self._ran]

    def trained(self, batches: int) -> int:
        """Those that it trained on."""
        return len(self._ran)

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """A Sampler draws, and may stand by; a Trainer fetches and trains."""
        assert self.group is not None
        self._ran, self._trainer = [], stages.trainer
        self._last_step = self._steps = -1
        try:
            if self.samples:
                self._draw(epoch, batches, stages, timeline)
            elif self._trainer is not None:
                self.group.enter(self.roles.trainers)
                if self.shares:
                    self.group.share_state(self._trainer.state())
            if not self.samples or self.roles.standby:
                _Training(self, stages, timeline).run()
        except BaseException:
            with suppress(Exception):  # so that nobody waits for this rank
                self.line.say(GiveUp())
            raise
        finally:
            if self._trainer is not None:
                self._trainer.group = None
        assert self._shelf is not None
        self._counts.add("schedule", HANDED_BYTES, self._shelf.written)
        self._shelf.written = 0
        self._counts.add("schedule", RANK_TRAINED, len(self._ran), str(self.rank))

    def _draw(self, epoch: int, batches: list[Tensor], stages: Stages, timeline: Timeline) -> None:
        """Draw batches as long as there are any, and put each in its place: that is S = G + M + C
        of the paper. Waiting for a place is in no phase."""
        assert self._shelf is not None
        lane, drawn = f"rank {self.rank}", 0
        while (number := self.line.ask(Draw())) is not None:
            with timeline.span("sample", number, lane):
                batch = stages.sampler.sample(batches[number], epoch, number)
                if not isinstance(batch, MiniBatch):
                    raise UnsupportedError(
                        "schedule=factored hands over batches of gnnbench's own blocks, not a"
                        f" {type(batch).__name__}; take another sampler, or schedule=serial"
                    )
                layout = Layout()
                parts = batch.mapped(layout.place)
            room = self.ask(Drawn(number, layout.size))
            with timeline.span("sample", number, lane):
                self._shelf.write(layout, room)
            self.line.say(Full(number, parts, layout.size))
            drawn += 1
        self._counts.add("schedule", RANK_DRAWN, drawn, str(self.rank))

    def ask(self, word: Any) -> Any:
        """The desk's answer; the time until it is there counts as waiting for the queue."""
        assert self.group is not None
        began = time.perf_counter()
        with self.group.pulse.waiting():
            answer = self.line.ask(word)
        self._counts.add("schedule", RANK_WAIT, time.perf_counter() - began, str(self.rank))
        return answer

    def audited(self, reason: str, seen: Sequence[bytes] = ()) -> Any:
        """What was trained on since the last call."""
        ran, self._ran = self._ran, []
        found = []
        for number, sizes, loss in ran:
            told = None if loss is None else float(loss)
            seeds, edges, nodes = sizes.seeds.numel(), sizes.num_edges, sizes.num_nodes
            found.append(Trained(number, seeds, edges, nodes, told))
        current = self._trainer is not None and 0 <= self._last_step == self._steps - 1
        weights = weights_of(self._trainer.model) if current else ""
        return Worked(found, reason, weights, list(seen))

    def close(self) -> None:
        """Leave the group and the queue."""
        super().close()
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None


class _Training:
    """A Trainer's epoch: parts of steps taken and fetched on a thread, trained on the caller's.

    With ``depth`` 0 one after the other. On a GPU fetching has a stream of its own; what it made is
    let go on it once its readers are waited for, as in ``gnnbench.pipelines.prefetch``.
    """

    def __init__(self, executor: Executor, stages: Stages, timeline: Timeline) -> None:
        self._own, self._stages, self._timeline = executor, stages, timeline
        self._depth = executor.roles.depth
        self._lane_name = f"rank {executor.rank}"
        self._items: list[_Item] = []
        self._failed: Exception | None = None

    def run(self) -> None:
        """Until all is trained on. Raises the first error of either thread."""
        from gnnbench.pipelines.streams import own_lane, side_lane
        from gnnbench.pipelines.threads import Progress

        device = self._stages.sampler.job.device
        self._compute = own_lane(device)
        if not self._depth:
            self._fetching = self._compute
            for item in self._fetched():
                self._train(item)
            return
        self._progress = Progress()
        self._fetching = side_lane(device, "memory_io")
        self._fetching.after(self._compute.mark())
        try:
            self._progress.run(self._train_all, self._fetch_all)
        except LostError:
            if self._failed is not None:  # by which the other thread has lost the desk
                raise self._failed from None
            raise
        finally:
            with suppress(RuntimeError):  # a device that has failed takes no more work
                self._compute.after(self._fetching.mark())

    def _fetch_all(self) -> None:
        with self._fetching.entered():
            for _ in self._fetched():
                self._progress.note("loaded")
            self._progress.note("loaded")

    def _train_all(self) -> None:
        try:
            place = 0
            while True:
                self._progress.reach("loaded", place + 1)
                if place == len(self._items):
                    return
                self._train(self._items[place])
                self._progress.note("trained")
                place += 1
        except Exception as error:
            self._failed = error
            with suppress(Exception):  # the other thread may wait for the desk
                self._own.line.say(GiveUp())
            raise

    def _fetched(self) -> Iterator[_Item]:
        """The rank's parts of steps, as long as there are any."""
        own = self._own
        while True:
            if (last := len(self._items) - self._depth - 1) >= 0:
                if self._depth:
                    self._progress.reach("trained", last + 1)
                    self._fetching.after(self._items[last].done)
                self._items[last].batch = self._items[last].rows = None
            share = own.ask(Want())
            if isinstance(share, End):
                own._steps = share.steps
                return
            item = _Item(share)
            if share.batch is not None:
                self._fetch(item)
            self._items.append(item)
            yield item

    def _fetch(self, item: _Item) -> None:
        """Take a batch out of its place and fetch its rows: that is E, as the paper counts it."""
        share, own = item.share, self._own
        assert share.batch is not None and share.full is not None and share.room is not None
        assert own._shelf is not None
        lane = f"{self._lane_name} {self._fetching.name}".rstrip()
        with self._timeline.span("memory_io", share.batch, lane):
            batch = own._shelf.take(share.full.parts, share.full.size, share.room)
            own.line.say(Taken(share.batch))
            assert self._stages.store is not None
            item.batch, item.rows = batch, self._stages.store.load(batch)
        item.loaded = self._fetching.mark()

    def _train(self, item: _Item) -> None:
        own, share, trainer = self._own, item.share, self._stages.trainer
        loss: Tensor | None = None
        if item.batch is not None:
            self._compute.after(item.loaded)
        if trainer is not None:
            number = -1 if share.batch is None else share.batch
            with self._timeline.span("compute", number, self._lane_name):
                loss = self._step(trainer, item)
        if item.batch is not None and share.batch is not None:
            self._stages.keep(item.batch, item.rows)
            own._ran.append((share.batch, item.batch.sizes(), loss))
        item.done = self._compute.mark()
        own._last_step = share.step

    def _step(self, trainer: Any, item: _Item) -> Tensor | None:
        group, share = self._own.group, item.share
        assert group is not None
        trainer.group = group if share.members > 1 else None
        if share.members > 1:
            group.enter(share.members)
            if share.joins:
                group.share_state(trainer.state())
        if item.batch is None:
            trainer.step_of_nothing()
            return None
        trainer.step(item.batch, item.rows)
        loss: Tensor = trainer.losses[-1]
        return loss
