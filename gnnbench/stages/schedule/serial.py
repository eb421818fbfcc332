"""One batch after the other, one phase after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.cell import Until
from gnnbench.stages.schedule.base import ScheduleSpec, Stages

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.measure.timeline import Timeline


@dataclass(frozen=True)
class Serial(ScheduleSpec):
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
        ahead, last = stages.ahead, None
        for first in range(0, len(batches), ahead):
            drawn = []
            for number, seeds in enumerate(batches[first : first + ahead], first):
                with timeline.span("sample", number):
                    drawn.append(sampler.sample(seeds, epoch, number))
            if ahead > 1:
                with timeline.span("memory_io", first):
                    drawn = stages.arranged(drawn, last)
                last = drawn[-1]
            for nth, batch in enumerate(drawn):
                number = first + nth
                with timeline.span("memory_io", number):
                    rows = stages.load(drawn, nth)
                if trainer is not None:
                    with timeline.span("compute", number):
                        trainer.step(batch, rows)
                keep(batch, rows)
