"""``schedule=factored``: Samplers and Trainers with a bounded queue between (GNNLab, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.distributed.allocation import ALL_BATCHES, PUBLISHED
from gnnbench.distributed.data_parallel import ORDERS, PER_RANK_STORES, check_cache
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.pipelines.training_step import EAGER

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.distributed.rank_schedule import RankSchedule
    from gnnbench.features.spec import StoreSpec
    from gnnbench.models.aggregation import AggregateSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

GIVEN, AUTO = "given", "auto"


class FactoredPlan(SchedulePlan):
    """Each batch is sampled by one rank and trained on by one."""

    _spec: Factored

    @property
    def outputs_in_flight(self) -> int:
        """The rows that are trained on, and those ahead."""
        return self._spec.depth + 1

    @property
    def batches_per_update(self) -> int:
        """One batch of each trainer; 0 if the number of trainers varies."""
        fixed = self._spec.allocation == GIVEN and not self._spec.standby
        return self._spec.trainers if fixed else 0

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` if several samplers would not sample what one samples, or
        batches are reordered."""
        if not (sampler.mini_batches and sampler.repeats):
            raise UnsupportedError(
                f"schedule '{self._spec.name}' needs draws that know no rank, in blocks of"
                f" gnnbench's own, and sampler '{sampler.name}' has others; take one of"
                " gnnbench's samplers"
            )
        if order.name not in ORDERS:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' hands out batches one by one; take order=as-drawn"
                f" instead of '{order.name}'"
            )
        if features is None:
            return
        if features.name not in PER_RANK_STORES:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' does not run features '{features.name}': which batch"
                f" a trainer has next is not known; take one of: {', '.join(PER_RANK_STORES)}"
            )
        check_cache(self._spec.name, features)

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Raise ``UnsupportedError`` for padded steps, which do not average gradients."""
        if self._spec.step != EAGER:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' averages gradients within a step; take step=eager"
            )

    def rank_stages(
        self, rank: int, sampler: SamplerSpec, features: StoreSpec | None
    ) -> tuple[SamplerSpec, StoreSpec | None]:
        """Return stages without topology in GPU memory for a Trainer, as in GNNLab.

        Cache policy, gate and audit of a Trainer sample from host memory. With ``auto`` the roles
        are not known yet: the last rank, which measures, samples in any case, and others load the
        topology when they receive that role. In an epoch that only samples no rank trains.
        """
        samplers = self._spec.samplers if self._spec.allocation == GIVEN else 1
        trains = (
            features is not None and rank < self._spec.samplers + self._spec.trainers - samplers
        )
        return sampler.lean() if trains else sampler, features

    def rank_schedule(self, rank: int, ranks: int) -> RankSchedule:
        """Return a rank that receives its role when it joins."""
        from gnnbench.distributed.executor import Executor

        return Executor(rank, ranks)


@dataclass(frozen=True)
class Factored(ScheduleSpec):
    """Rank 0, the worker itself, and the next ranks train; the others sample.

    Batches are not divided (``docs/several-gpus.md``).
    """

    name: ClassVar[str] = "factored"
    summary: ClassVar[str] = (
        "some processes sample, others fetch and train, a bounded queue between them (GNNLab)"
    )
    plan_type: ClassVar[type[SchedulePlan]] = FactoredPlan
    samplers: int = option(1, "processes that sample", range(1, 1024))
    trainers: int = option(1, "processes that train, the worker among them", range(1, 1024))
    allocation: str = option(
        GIVEN,
        "given: as many of each as requested; auto: samplers + trainers processes, divided by"
        " GNNLab's formula from an epoch that one of them measures",
        (GIVEN, AUTO),
    )
    queue: int = option(16, "batches that the queue has places for", range(1, 65537))
    depth: int = option(
        1, "batches fetched before the one that trains; 0: one after the other", range(65)
    )
    standby: bool = option(
        False,
        "a sampler that has nothing left to draw trains until the end of the epoch, where GNNLab's"
        " profit says so; then the number of updates is not the same in all epochs",
        (True, False),
    )
    profit: str = option(
        ALL_BATCHES,
        "what the profit of a standby trainer counts; published: batches in the queue and trainers,"
        " as in the paper; all-batches: all batches that are in no step yet, and as trainers also"
        " samplers that train already, so that fewer of them do",
        (PUBLISHED, ALL_BATCHES),
        added=True,
    )

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved.

        Raises ``UnsupportedError`` for a profit where no sampler stands by.
        """
        if self.profit != ALL_BATCHES and not self.standby:
            raise UnsupportedError(
                f"schedule 'factored': profit={self.profit} decides when samplers that stand by"
                " train; give standby=true"
            )
        return super().resolved(device)

    def build(self, job: Job) -> Schedule:
        """Launch the other ranks; an epoch that only samples is serial, in one process."""
        from gnnbench.distributed.allocation import Allocation
        from gnnbench.distributed.dispatcher import Dispatcher
        from gnnbench.distributed.executor import Executor
        from gnnbench.distributed.launcher import Launcher

        if job.cell.goes_until is Until.SAMPLE:
            return SerialSchedule()
        requested, auto = Allocation(self.samplers, self.trainers), self.allocation == AUTO
        own = Executor(0, self.samplers + self.trainers)
        dispatcher = Dispatcher(
            job, own, requested, auto, self.queue, self.depth, self.standby, self.profit
        )
        launcher = Launcher(job, own, dispatcher)
        dispatcher.abort_with(launcher.session.abort_collectives)
        return launcher
