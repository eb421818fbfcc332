"""``schedule=prefetch``: samples and fetches batches ahead, concurrently with training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec, Stages
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import SerialSchedule

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.features.spec import StoreSpec
    from gnnbench.measure.timeline import Timeline


AUTO, MOST = 0, 64  # depth


class PrefetchPlan(SchedulePlan):
    """A depth of 0 becomes the window of the feature store."""

    _spec: Prefetch

    @property
    def outputs_in_flight(self) -> int:
        """The rows that are trained on, and those ahead."""
        return (self._spec.depth or 1) + 1

    def adapted_to(self, features: StoreSpec | None) -> Prefetch:
        """Return the spec with the depth of the store's window."""
        if self._spec.depth != AUTO:
            return self._spec
        return replace(self._spec, depth=min(getattr(features, "window", 1), MOST))


@dataclass(frozen=True)
class Prefetch(ScheduleSpec):
    """The spec of ``PrefetchSchedule``."""

    name: ClassVar[str] = "prefetch"
    summary: ClassVar[str] = "batches sampled and their rows fetched while another one trains"
    plan_type: ClassVar[type[SchedulePlan]] = PrefetchPlan
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
        """Return the spec with all defaults. Raises ``UnsupportedError``, also for ``sms`` on a
        CPU."""
        if self.sms and device == "cpu":
            raise UnsupportedError(
                f"schedule.sms={self.sms} shares out a GPU's multiprocessors; give --device cuda,"
                " or 0"
            )
        return super().resolved(device)

    def build(self, job: Job) -> Schedule:
        """Build the schedule, which keeps nothing between epochs."""
        return PrefetchSchedule(self.depth or 1, self.sms, self.first)


class PrefetchSchedule(Schedule):
    """Samples on one thread, fetches on a second and trains on the caller's, in serial's order.

    On a GPU each thread has its own stream. Rows are fetched up to ``depth`` batches ahead of
    training, and batches sampled up to ``depth`` ahead of fetching, plus the batches of a window.
    A store that loads by windows needs a depth of one window: with less the link is idle until
    most of a window is trained on. ``sms`` and ``first`` are those of the spec.
    """

    def __init__(self, depth: int, sms: int = 0, first: str = "link") -> None:
        self.depth, self.sms, self.first = depth, sms, first

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the epoch; spans of sampling and memory IO have their own lanes.

        The first error of any thread ends the epoch, and no thread outlives it. An epoch that only
        samples has nothing to overlap and runs serially.
        """
        if until is Until.SAMPLE or not batches:
            SerialSchedule().epoch(epoch, batches, stages, timeline, until)
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
        """Run batches of the epoch from number ``begin`` on, at least one, after ``last``.

        Returns the batch that ran last if the stages need windows.
        """
        from gnnbench.pipelines.prefetch_epoch import PrefetchEpoch

        running = PrefetchEpoch(self, epoch, batches, stages, timeline, begin, last)
        running.run()
        return running.last
