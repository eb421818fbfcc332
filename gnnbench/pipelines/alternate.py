"""Sampling and training in turns on one GPU (GNNLab, section 5.3: dynamic executor switching)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.serial import Serial

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.spec import StoreSpec
    from gnnbench.sampling.stage import SamplerSpec

HOST, GPU, DEFAULT = "host", "gpu", "default"


@dataclass(frozen=True)
class Alternate(ScheduleSpec):
    """A turn of sampling, whose samples are stored, then a turn of training on them.

    Batches are trained on in serial's order. The topology stays where it is in both turns: the
    paper keeps it, so that switching takes no time, at the cost of a smaller cache.
    """

    name: ClassVar[str] = "alternate"
    summary: ClassVar[str] = "an epoch sampled and its samples stored, then trained (GNNLab)"
    batches: int = option(
        0,
        "batches of a turn, filled up to whole windows of the other stages; 0: the epoch's, as"
        " GNNLab has it",
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
        """The same with the default put in. Raises ``UnsupportedError``."""
        if device == "cpu" and self.stored == GPU:
            raise UnsupportedError("schedule.stored=gpu needs a GPU; give --device cuda, or host")
        made = super().resolved(device)
        return replace(made, stored=HOST if self.stored == DEFAULT else self.stored)

    @property
    def held(self) -> int:
        """The rows that are trained on, and those ahead."""
        return self.depth + 1

    def fills(self, ahead: int) -> int | None:
        """A turn's samples wait on the GPU, where they are stored there."""
        return None if self.stored == GPU else super().fills(ahead)

    def check(self, sampler: SamplerSpec, features: StoreSpec | None) -> None:
        """What a foreign framework holds of a batch cannot be stored."""
        if not sampler.mini_batches:
            raise UnsupportedError(
                f"schedule '{self.name}' stores batches of gnnbench's own blocks, and sampler"
                f" '{sampler.name}' draws others; take one of gnnbench's own samplers, or"
                " schedule=serial"
            )

    def build(self, job: Job) -> Schedule:
        """Where only samples are drawn nobody trains on them: that is serial."""
        from gnnbench.pipelines.phases import Turns

        if job.cell.goes_until is Until.SAMPLE:
            return Serial()
        on_host = self.resolved(job.device.type).stored == HOST
        return Turns(job, self.batches, on_host, self.depth)
