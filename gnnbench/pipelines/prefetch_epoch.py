"""One epoch of the ``prefetch`` schedule: three threads and the buffers between them."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gnnbench.core.errors import UsageError
from gnnbench.pipelines.schedule import Stages

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.minibatch import Batch
    from gnnbench.measure.timeline import Timeline
    from gnnbench.pipelines.prefetch import PrefetchSchedule
    from gnnbench.pipelines.streams import Mark, WorkStream
    from gnnbench.sampling.stage import SamplerStage


@dataclass
class LoadedBatch:
    """A batch with its rows.

    ``loaded`` is reached when the rows are loaded, ``done`` when nothing reads batch or rows any
    more. ``previous`` ran before the batch and is needed to reorder the batch's window.
    """

    batch: Batch | None
    rows: Tensor | None
    loaded: Mark
    previous: Batch | None
    done: Mark = None


@dataclass
class PrefetchEpoch:
    """A running epoch; each method but ``run`` belongs to one thread.

    GPU memory returns to the stream that allocated it, whoever reads it. So the thread that made
    batches and rows also drops them, after its stream has waited for their readers. This also holds
    for parts of a foreign batch that its interface does not list. Which batch a stream waits for
    does not depend on how far the host is: memory and depth are the same in every run.
    """

    schedule: PrefetchSchedule
    epoch: int
    batches: list[Tensor]
    stages: Stages
    timeline: Timeline
    begin: int  # number of the first batch; positions in this class start at 0
    last: Batch | None
    _sampled: deque[tuple[Batch, Mark]] = field(default_factory=deque)
    _items: list[LoadedBatch] = field(default_factory=list)  # in the order in which they run

    def run(self) -> None:
        """Run all batches. Raises the first error of any thread."""
        from gnnbench.pipelines.streams import current_stream, side_stream
        from gnnbench.pipelines.threads import Progress

        device = self.batches[0].device
        self._progress = Progress()
        self._compute = current_stream(device)
        self._sampling = side_stream(device, "sample", self.schedule.first)
        self._fetching = side_stream(device, "memory_io", self.schedule.first, self.schedule.sms)
        side_streams = self._sampling, self._fetching
        for stream in side_streams:  # they use seeds, and what earlier work left in the stages
            stream.wait_for(self._compute.mark())
        try:
            self._progress.run(self._train, self._sample, self._fetch)
        except BaseException:
            with suppress(RuntimeError):  # a device that has failed accepts no more work
                self._join(*side_streams)
            raise
        self._join(*side_streams)

    def _join(self, *side_streams: WorkStream) -> None:
        """Order the caller's next work after all of the epoch's work."""
        for stream in side_streams:
            self._compute.wait_for(stream.mark())

    def _sample(self) -> None:
        progress, stream, sampler = self._progress, self._sampling, self.stages.sampler
        lead = self.stages.window + self.schedule.depth
        pending: deque[tuple[int, object, Mark]] = deque()

        def finish(max_pending: int) -> None:
            """Finish the oldest batches until ``max_pending`` are left."""
            while len(pending) > max_pending:
                number, ticket, mark = pending.popleft()
                self._sampled.append((self._finished(sampler, ticket, number), mark))
                progress.note("drawn")

        with stream.entered():
            for number, seeds in enumerate(self.batches):
                if not progress.reached("loaded", number - lead + 1):
                    finish(0)
                    progress.reach("loaded", number - lead + 1)
                # Loading of this batch waited until so many others were trained on.
                if (last := number - lead - self.schedule.depth - 1) >= 0:
                    stream.wait_for(self._items[last].done)
                    self._items[last].batch = self._items[last].previous = None
                with self.timeline.span("sample", self.begin + number, stream.name):
                    ticket = sampler.begin(seeds, self.epoch, self.begin + number)
                    if not sampler.submits_async:
                        ticket = sampler.end(ticket)
                pending.append((number, ticket, stream.mark()))
                del ticket
                finish(1 if sampler.submits_async else 0)
            finish(0)

    def _finished(self, sampler: SamplerStage, ticket: object, number: int) -> Batch:
        """Return the batch of a ticket; work that this enqueues belongs to the sampling phase."""
        if not sampler.submits_async:
            return ticket  # type: ignore[return-value]  # ``end`` was called already
        with self.timeline.span("sample", self.begin + number, self._sampling.name):
            return sampler.end(ticket)

    def _fetch(self) -> None:
        stages, stream = self.stages, self._fetching
        previous = self.last
        with stream.entered():
            for first in range(0, len(self.batches), stages.window):
                sampled = self._take_sampled(min(first + stages.window, len(self.batches)))
                if stages.window > 1:
                    size = len(sampled)
                    with self.timeline.span("memory_io", self.begin + first, stream.name):
                        sampled = stages.reorder(sampled, previous)
                    if len(sampled) != size:  # the other threads would wait for the rest
                        raise UsageError(
                            f"the order arranged {size} batches as {len(sampled)}; it must run each"
                            " of them once"
                        )
                for index in range(len(sampled)):
                    self._load(sampled, index, first + index, None if index else previous)
                previous = sampled[-1] if stages.window > 1 else None
        self.last = previous

    def _take_sampled(self, end: int) -> list[Batch]:
        """Return the sampled batches up to ``end`` that were not taken before."""
        self._progress.reach("drawn", end)
        taken: list[Batch] = []
        while len(self._items) + len(taken) < end:
            batch, mark = self._sampled.popleft()
            self._fetching.wait_for(mark)
            taken.append(batch)
        return taken

    def _load(
        self, sampled: list[Batch], index: int, position: int, previous: Batch | None
    ) -> None:
        """Load batch ``index`` of a window, the epoch's batch ``position`` to run."""
        progress, stream = self._progress, self._fetching
        if (last := position - self.schedule.depth - 1) >= 0:
            progress.reach("trained", last + 1)
            stream.wait_for(self._items[last].done)
            self._items[last].rows = None
        with self.timeline.span("memory_io", self.begin + position, stream.name):
            rows = self.stages.load(sampled, index)
        self._items.append(LoadedBatch(sampled[index], rows, stream.mark(), previous))
        progress.note("loaded")

    def _train(self) -> None:
        progress, stream, stages = self._progress, self._compute, self.stages
        for position in range(len(self.batches)):
            progress.reach("loaded", position + 1)
            item = self._items[position]
            assert item.batch is not None and item.rows is not None
            stream.wait_for(item.loaded)
            if stages.trainer is not None:
                with self.timeline.span("compute", self.begin + position):
                    stages.trainer.step(item.batch, item.rows)
            stages.keep(item.batch, item.rows)
            item.done = stream.mark()
            progress.note("trained")
