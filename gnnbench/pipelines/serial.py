"""One batch after the other, one phase after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.pipelines.schedule import DirectSchedule, Stages

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.minibatch import Batch
    from gnnbench.measure.timeline import Timeline


@dataclass(frozen=True)
class Serial(DirectSchedule):
    """Nothing runs beside anything else; on a GPU nothing here waits for it between batches."""

    name: ClassVar[str] = "serial"
    summary: ClassVar[str] = "one batch after the other"

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Sample, load and compute each batch; where the stages want it, draw several first.

        Putting them in order and announcing them is in a span of memory IO, as is their loading.
        """
        sampler, trainer, keep = stages.sampler, stages.trainer, stages.keep
        if until is Until.SAMPLE:  # one phase: marks between its batches would tell nothing
            with timeline.span("sample"):
                for number, seeds in enumerate(batches):
                    keep(sampler.sample(seeds, epoch, number), None)
            return
        if stages.ahead > 1:
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


def run_windows(
    epoch: int,
    batches: list[Tensor],
    stages: Stages,
    timeline: Timeline,
    begin: int = 0,
    last: Batch | None = None,
) -> Batch | None:
    """The same by groups that are drawn before the first of them is run.

    Of the epoch those from number ``begin`` on, after ``last``; returns the one that was run last.
    """
    for first in range(begin, begin + len(batches), stages.ahead):
        drawn: list[Batch] = []
        group = batches[first - begin : first - begin + stages.ahead]
        for number, seeds in enumerate(group, first):
            with timeline.span("sample", number):
                drawn.append(stages.sampler.sample(seeds, epoch, number))
        if stages.ahead > 1:
            with timeline.span("memory_io", first):
                drawn = stages.arranged(drawn, last)
        last = drawn[-1]
        for nth, batch in enumerate(drawn):
            with timeline.span("memory_io", first + nth):
                rows = stages.load(drawn, nth)
            if stages.trainer is not None:
                with timeline.span("compute", first + nth):
                    stages.trainer.step(batch, rows)
            stages.keep(batch, rows)
    return last
