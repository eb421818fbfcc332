"""``schedule=alternate``: sampling and training alternate on one GPU.

GNNLab, section 5.3: dynamic executor switching.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import SerialSchedule

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

HOST, GPU, DEFAULT = "host", "gpu", "default"


class AlternatePlan(SchedulePlan):
    """Samples are stored until their training phase."""

    _spec: Alternate

    @property
    def outputs_in_flight(self) -> int:
        """The rows that are trained on, and those ahead."""
        return self._spec.depth + 1

    def steady_after(self, window: int) -> int | None:
        """Return None for samples that are stored on the GPU: they accumulate for a phase."""
        return None if self._spec.stored == GPU else super().steady_after(window)

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` for batches of a foreign framework, which cannot be stored."""
        if features is not None and not sampler.mini_batches:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' stores batches of gnnbench's own blocks, and sampler"
                f" '{sampler.name}' draws others; take one of gnnbench's own samplers, or"
                " schedule=serial"
            )


@dataclass(frozen=True)
class Alternate(ScheduleSpec):
    """Samples a number of batches and stores them, then trains on them in the same order.

    The topology stays in memory during both phases. GNNLab keeps it, too: switching then takes no
    time, at the cost of a smaller cache.
    """

    name: ClassVar[str] = "alternate"
    summary: ClassVar[str] = "an epoch sampled and its samples stored, then trained (GNNLab)"
    plan_type: ClassVar[type[SchedulePlan]] = AlternatePlan
    batches: int = option(
        0,
        "batches sampled before they are trained on, rounded up to whole windows; 0: all of the"
        " epoch, as in GNNLab",
        range(1 << 20),
    )
    stored: str = option(
        DEFAULT,
        "where samples wait: host: in its memory, for a GPU locked (default, GNNLab's); gpu: in the"
        " GPU's",
        (DEFAULT, HOST, GPU),
    )
    depth: int = option(
        0,
        "batches fetched before the one that trains, and taken out before those, as prefetch does;"
        " 0: one after the other",
        range(65),
    )

    def resolved(self, device: str) -> Self:
        """Return the spec with all defaults. Raises ``UnsupportedError``."""
        if device == "cpu" and self.stored == GPU:
            raise UnsupportedError("schedule.stored=gpu needs a GPU; give --device cuda, or host")
        made = super().resolved(device)
        return replace(made, stored=HOST if self.stored == DEFAULT else self.stored)

    def build(self, job: Job) -> Schedule:
        """Build the schedule; an epoch that only samples has no training phase and is serial."""
        from gnnbench.pipelines.alternating_phases import AlternatingPhases

        if job.cell.goes_until is Until.SAMPLE:
            return SerialSchedule()
        on_host = self.resolved(job.device.type).stored == HOST
        return AlternatingPhases(job, self.batches, on_host, self.depth)
