"""``schedule=serial``: one batch after the other, one phase after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec, Stages

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.measure.timeline import Timeline


class SerialSchedule(Schedule):
    """Runs no phases concurrently. On a GPU the host does not wait between batches."""

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Sample, load and train on each batch, or on each window if the stages need windows."""
        sampler, trainer, keep = stages.sampler, stages.trainer, stages.keep
        if until is Until.SAMPLE:  # one span: with a single phase, marks between batches add none
            with timeline.span("sample"):
                for number, seeds in enumerate(batches):
                    keep(sampler.sample(seeds, epoch, number), None)
            return
        if stages.window > 1:
            run_windows(epoch, batches, stages, timeline)
            return
        store = stages.store
        assert store is not None
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = sampler.sample(seeds, epoch, number)
            with timeline.span("memory_io", number):
                rows = store.load(batch)
            if trainer is not None:
                with timeline.span("compute", number):
                    trainer.step(batch, rows)
            keep(batch, rows)


@dataclass(frozen=True)
class Serial(ScheduleSpec):
    """The spec of ``SerialSchedule``."""

    name: ClassVar[str] = "serial"
    summary: ClassVar[str] = "one batch after the other"

    def build(self, job: Job) -> Schedule:
        """Build the schedule, which keeps nothing between epochs."""
        return SerialSchedule()


def run_windows(
    epoch: int,
    batches: list[Tensor],
    stages: Stages,
    timeline: Timeline,
    begin: int = 0,
    last: Batch | None = None,
) -> Batch | None:
    """Sample a window of batches, then load and train on each of them, window by window.

    The spans of memory IO include reordering and announcing a window. ``batches`` are those of the
    epoch from number ``begin`` on; ``last`` is the batch that ran before them. Returns the batch
    that ran last.
    """
    for first in range(begin, begin + len(batches), stages.window):
        sampled: list[Batch] = []
        window = batches[first - begin : first - begin + stages.window]
        for number, seeds in enumerate(window, first):
            with timeline.span("sample", number):
                sampled.append(stages.put_aside(stages.sampler.sample(seeds, epoch, number)))
        if stages.window > 1:
            with timeline.span("memory_io", first):
                sampled = stages.reorder(sampled, last)
        for index in range(len(sampled)):
            with timeline.span("memory_io", first + index):
                batch = stages.take(sampled, index)
                rows = stages.load(sampled, index)
            if stages.trainer is not None:
                with timeline.span("compute", first + index):
                    stages.trainer.step(batch, rows)
                    stages.stepped(batch)
            stages.keep(batch, rows)
            stages.release(sampled, index)
            del batch  # the next one may be fetched into its memory
        last = sampled[-1]
    return last
