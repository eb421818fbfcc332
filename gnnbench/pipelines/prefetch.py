"""Batches sampled and their rows fetched ahead: phases of different batches beside one another."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.stage import option
from gnnbench.pipelines.schedule import DirectSchedule, Stages
from gnnbench.pipelines.serial import Serial

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from torch import Tensor

    from gnnbench.core.minibatch import Batch
    from gnnbench.features.spec import StoreSpec
    from gnnbench.measure.timeline import Timeline
    from gnnbench.pipelines.streams import Lane
    from gnnbench.sampling.stage import SamplerStage


AUTO, MOST = 0, 64  # depth


@dataclass(frozen=True)
class Prefetch(DirectSchedule):
    """Samples on a thread, fetches on another and trains on the caller's, in serial's order.

    On a GPU each has a stream of its own. Rows are fetched up to ``depth`` batches before the one
    that trains, batches sampled up to ``depth`` before the one that is fetched; where the stages
    want batches drawn ahead, those come on top. Rows that come window by window want a window's
    depth: with less the link is idle until a window is nearly trained on.
    """

    name: ClassVar[str] = "prefetch"
    summary: ClassVar[str] = "batches sampled and their rows fetched beside the one that trains"
    depth: int = option(
        AUTO, "batches fetched before the one that trains, and sampled before those; 0: one, or as"
        " many as a window of the feature store has", range(MOST + 1),
    )  # fmt: skip
    sms: int = option(
        0, "multiprocessors of a GPU that memory IO's kernels may run on; 0: all", range(1025)
    )

    first: str = option(
        "link", "whose kernels a GPU begins first: memory IO's and the sampler's (link), or none"
        " (even: better where a gather takes the whole GPU)", ("link", "even"),
    )  # fmt: skip

    def resolved(self, device: str) -> Self:
        """A CPU has none to share out. Raises ``UnsupportedError``."""
        if self.sms and device == "cpu":
            raise UnsupportedError(
                f"schedule.sms={self.sms} shares out a GPU's multiprocessors; give --device cuda,"
                " or 0"
            )
        return super().resolved(device)

    def beside(self, features: StoreSpec | None) -> Self:
        """The same with the depth that a store wants."""
        if self.depth != AUTO:
            return self
        return replace(self, depth=min(getattr(features, "window", 1), MOST))

    @property
    def held(self) -> int:
        """The rows that are trained on, and those ahead."""
        return (self.depth or 1) + 1

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Sample, load and compute each batch; spans of sample and memory IO on their own lanes.

        The first error of any phase ends the epoch, and no thread outlives it. Where only samples
        are drawn there is nothing to run beside them: that is serial.
        """
        if until is Until.SAMPLE or not batches:
            Serial().epoch(epoch, batches, stages, timeline, until)
            return
        self.run(epoch, batches, stages, timeline)

    def run(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        begin: int = 0,
        last: Batch | None = None,
    ) -> Batch | None:
        """The same from the epoch's batch number ``begin`` on, at least one, after ``last``.

        Returns the one that was run last where the stages want batches drawn ahead.
        """
        running = _Epoch(self.beside(None), epoch, batches, stages, timeline, begin, last)
        running.run()
        return running.last


@dataclass
class _Item:
    """A batch that is loaded; ``loaded`` is passed when its rows are there, ``done`` when all that
    reads them or the batch is. ``before`` was run before it, and looked at to arrange its window.
    """

    batch: Batch | None
    rows: Tensor | None
    loaded: Any
    before: Batch | None
    done: Any = None


@dataclass
class _Epoch:
    """An epoch at work; each method but ``run`` is one thread's.

    A GPU's memory goes back to the stream that it was allocated on, whoever reads it. So batches
    and rows are let go by the thread that made them, once its stream waits for their readers: that
    holds for the parts that a foreign batch does not tell of, too. Which batch is waited for does
    not depend on how far the host is: memory and depth are the same in every run.
    """

    spec: Prefetch
    epoch: int
    batches: list[Tensor]
    stages: Stages
    timeline: Timeline
    begin: int  # the number of the first batch; in here they are counted from 0
    last: Batch | None
    _drawn: deque[tuple[Batch, Any]] = field(default_factory=deque)
    _items: list[_Item] = field(default_factory=list)  # in the order in which they are run

    def run(self) -> None:
        """Until all batches are trained on. Raises the first error of any thread."""
        from gnnbench.pipelines.streams import own_lane, side_lane
        from gnnbench.pipelines.threads import Progress

        device = self.batches[0].device
        self._progress = Progress()
        self._compute = own_lane(device)
        self._sampling = side_lane(device, "sample", self.spec.first)
        self._fetching = side_lane(device, "memory_io", self.spec.first, self.spec.sms)
        sides = self._sampling, self._fetching
        for side in sides:  # it uses seeds, and what earlier work left in the stages
            side.after(self._compute.mark())
        try:
            self._progress.run(self._train, self._sample, self._fetch)
        except BaseException:
            with suppress(RuntimeError):  # a device that has failed takes no more work
                self._join(*sides)
            raise
        self._join(*sides)

    def _join(self, *sides: Lane) -> None:
        """What the caller does next comes after all of the epoch's work."""
        for side in sides:
            self._compute.after(side.mark())

    def _sample(self) -> None:
        progress, lane, sampler = self._progress, self._sampling, self.stages.sampler
        lead = self.stages.ahead + self.spec.depth
        asked: deque[tuple[int, Any, Any]] = deque()

        def hand_over(most: int) -> None:
            """Of the batches asked for all but so many."""
            while len(asked) > most:
                number, ticket, mark = asked.popleft()
                self._drawn.append((self._drawn_by(sampler, ticket, number), mark))
                progress.note("drawn")

        with lane.entered():
            for number, seeds in enumerate(self.batches):
                if not progress.reached("loaded", number - lead + 1):
                    hand_over(0)
                    progress.reach("loaded", number - lead + 1)
                # Its loading waited until so many others were trained on.
                if (last := number - lead - self.spec.depth - 1) >= 0:
                    lane.after(self._items[last].done)
                    self._items[last].batch = self._items[last].before = None
                with self.timeline.span("sample", self.begin + number, lane.name):
                    ticket = sampler.begin(seeds, self.epoch, self.begin + number)
                    if not sampler.asks:
                        ticket = sampler.end(ticket)
                asked.append((number, ticket, lane.mark()))
                del ticket
                hand_over(1 if sampler.asks else 0)
            hand_over(0)

    def _drawn_by(self, sampler: SamplerStage, ticket: Any, number: int) -> Batch:
        """The batch of a ticket; what is enqueued for it now is the phase's as well."""
        if not sampler.asks:
            batch: Batch = ticket
            return batch
        with self.timeline.span("sample", self.begin + number, self._sampling.name):
            return sampler.end(ticket)

    def _fetch(self) -> None:
        stages, lane = self.stages, self._fetching
        before = self.last
        with lane.entered():
            for first in range(0, len(self.batches), stages.ahead):
                drawn = self._window(min(first + stages.ahead, len(self.batches)))
                if stages.ahead > 1:
                    wanted = len(drawn)
                    with self.timeline.span("memory_io", self.begin + first, lane.name):
                        drawn = stages.arranged(drawn, before)
                    if len(drawn) != wanted:  # the other threads would wait for the rest
                        raise UsageError(
                            f"the order arranged {wanted} batches as {len(drawn)}; it must run each"
                            " of them once"
                        )
                for nth in range(len(drawn)):
                    self._load(drawn, nth, first + nth, None if nth else before)
                before = drawn[-1] if stages.ahead > 1 else None
        self.last = before

    def _window(self, end: int) -> list[Batch]:
        """The batches drawn up to ``end`` that were not asked for yet."""
        self._progress.reach("drawn", end)
        found: list[Batch] = []
        while len(self._items) + len(found) < end:
            batch, mark = self._drawn.popleft()
            self._fetching.after(mark)
            found.append(batch)
        return found

    def _load(self, drawn: list[Batch], nth: int, place: int, before: Batch | None) -> None:
        """Load the ``nth`` of a window's batches, the epoch's ``place``-th to be run."""
        progress, lane = self._progress, self._fetching
        if (last := place - self.spec.depth - 1) >= 0:
            progress.reach("trained", last + 1)
            lane.after(self._items[last].done)
            self._items[last].rows = None
        with self.timeline.span("memory_io", self.begin + place, lane.name):
            rows = self.stages.load(drawn, nth)
        self._items.append(_Item(drawn[nth], rows, lane.mark(), before))
        progress.note("loaded")

    def _train(self) -> None:
        progress, lane, stages = self._progress, self._compute, self.stages
        for place in range(len(self.batches)):
            progress.reach("loaded", place + 1)
            item = self._items[place]
            assert item.batch is not None and item.rows is not None
            lane.after(item.loaded)
            if stages.trainer is not None:
                with self.timeline.span("compute", self.begin + place):
                    stages.trainer.step(item.batch, item.rows)
            stages.keep(item.batch, item.rows)
            item.done = lane.mark()
            progress.note("trained")
