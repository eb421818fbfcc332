"""``schedule=factored``: Samplers and Trainers with a bounded queue between (GNNLab, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.option import Interval
from gnnbench.core.stage import option
from gnnbench.distributed.allocation import ALL_BATCHES, PUBLISHED
from gnnbench.distributed.data_parallel import ORDERS, PER_RANK_STORES, check_policy
from gnnbench.features.policies.policy import SIEVE, Policy
from gnnbench.features.spec import Cache, Host
from gnnbench.pipelines.prefetch import Prefetch
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import Serial, SerialSchedule
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
FEATURES = "features"  # standby trainers have the ratio of the feature stage


class FactoredPlan(SchedulePlan):
    """Each batch is sampled by one rank and trained on by one."""

    _spec: Factored

    @property
    def outputs_in_flight(self) -> int:
        """The rows that are trained on, and those ahead."""
        return self._spec.depth + 1

    @property
    def batches_per_update(self) -> int:
        """One batch of each trainer; 0 if the number of trainers varies, or updates are
        asynchronous."""
        spec = self._spec
        fixed = spec.allocation == GIVEN and not (spec.standby or spec.staleness)
        return spec.trainers if fixed else 0

    def alone(self) -> ScheduleSpec:
        """Return a schedule that loads and trains as a Trainer does."""
        return Prefetch(depth=self._spec.depth) if self._spec.depth else Serial()

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
        check_policy(self._spec.name, features)
        self._check_roles(features)

    def _check_roles(self, features: StoreSpec) -> None:
        """Raise ``UnsupportedError`` for options of a cache that the feature store is none of."""
        is_cache = isinstance(features, Cache)
        if self._spec.standby_ratio != FEATURES and not is_cache:
            raise UnsupportedError(
                f"schedule.standby_ratio is the ratio of a cache, and features '{features.name}'"
                " has none; take features=cache, or leave it out"
            )
        if not self._spec.marks:
            return
        if not (isinstance(features, Cache) and isinstance(features.table, Host)):
            raise UnsupportedError(
                "schedule.marks=true needs features=cache with features.table=host: a GPU that"
                " reads missing rows itself looks them up in the same kernel"
            )
        if Policy.named(features.policy).name == SIEVE:
            raise UnsupportedError(
                "schedule.marks=true needs a cache that stays the same; take another"
                f" features.policy than {SIEVE}"
            )

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Raise ``UnsupportedError`` for padded steps, which do not average gradients."""
        if self._spec.step != EAGER:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' averages gradients within a step; take step=eager"
            )

    def rank_stages(
        self, rank: int, sampler: SamplerSpec, features: StoreSpec | None
    ) -> tuple[SamplerSpec, StoreSpec | None]:
        """Return stages that occupy the GPU memory which the rank's role needs, as in GNNLab.

        A Trainer has no topology there, and a Sampler no features. Cache policy, gate and audit of
        a Trainer sample from host memory, and those of a Sampler load from there. With ``auto`` the
        roles are not known yet: the last rank, which measures, has both, and each rank gets what
        its role needs when it receives it. In an epoch that only samples no rank trains.
        """
        spec = self._spec
        if features is None:
            return sampler, features
        if spec.allocation == AUTO:
            is_last = rank == spec.samplers + spec.trainers - 1
            return sampler if is_last else sampler.lean(), features
        if rank < spec.trainers:
            return sampler.lean(), features
        return sampler, self.sampler_store(features)

    def sampler_store(self, features: StoreSpec) -> StoreSpec:
        """Return the feature store of a Sampler: that of its standby Trainer if it has one."""
        if not self._spec.standby:
            return features.lean()
        if self._spec.standby_ratio == FEATURES or not isinstance(features, Cache):
            return features
        return replace(features, ratio=self._spec.standby_ratio)

    def rank_schedule(self, rank: int, ranks: int) -> RankSchedule:
        """Return a rank that receives its role when it joins."""
        from gnnbench.distributed.executor import Executor

        return Executor(rank, ranks, sampler_store=self.sampler_store)


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
    standby_ratio: float | str = option(
        FEATURES,
        "features.ratio of a standby trainer's cache, next to the topology of its sampler;"
        f" {FEATURES}: that of the trainers (auto: each has what fits)",
        Interval(0, 1, (FEATURES,)),
        added=True,
    )
    marks: bool = option(
        False,
        "samplers mark the nodes that the trainers cache, so that trainers look none up (GNNLab);"
        " for features=cache with table=host",
        (True, False),
        added=True,
    )
    staleness: int = option(
        0,
        "0: updates are synchronous, each of a batch of every trainer; above: asynchronous, each of"
        " one batch, and a trainer gets its batch c when all others have finished their batch"
        " c - staleness (bounded staleness)",
        range(1025),
        added=True,
    )

    @property
    def is_measured(self) -> bool:
        """Whether roles are divided by a measurement."""
        return self.allocation == AUTO

    def resolved(self, device: str) -> Self:
        """Return a copy with every default resolved.

        Raises ``UnsupportedError`` for a profit or a ratio where no sampler stands by.
        """
        if self.standby_ratio != FEATURES and not self.standby:
            raise UnsupportedError(
                f"schedule 'factored': standby_ratio={self.standby_ratio} is that of samplers that"
                " stand by; give standby=true"
            )
        if self.profit != ALL_BATCHES and not self.standby:
            raise UnsupportedError(
                f"schedule 'factored': profit={self.profit} decides when samplers that stand by"
                " train; give standby=true"
            )
        return super().resolved(device)

    def build(self, job: Job) -> Schedule:
        """Launch the other ranks; an epoch that only samples is serial, in one process."""
        from gnnbench.distributed.dispatcher import Dispatcher
        from gnnbench.distributed.executor import Executor
        from gnnbench.distributed.launcher import Launcher

        if job.cell.goes_until is Until.SAMPLE:
            return SerialSchedule()
        own = Executor(0, self.samplers + self.trainers)
        dispatcher = Dispatcher(job, own, self)
        launcher = Launcher(job, own, dispatcher)
        dispatcher.abort_with(launcher.session.abort_collectives)
        return launcher
