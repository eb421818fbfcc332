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
        """Sample, load and compute each batch."""
        sampler, store, trainer, keep = stages.sampler, stages.store, stages.trainer, stages.keep
        if until is Until.SAMPLE:  # one phase: marks between its batches would tell nothing
            with timeline.span("sample"):
                for number, seeds in enumerate(batches):
                    keep(sampler.sample(seeds, epoch, number), None)
            return
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
