"""How a schedule fits into a recipe: what it promises to the other stages and needs from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.pipelines.training_step import EAGER, GRAPH

if TYPE_CHECKING:
    from gnnbench.distributed.rank_schedule import RankSchedule
    from gnnbench.features.spec import StoreSpec
    from gnnbench.models.aggregation import AggregateSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.pipelines.schedule import ScheduleSpec
    from gnnbench.sampling.stage import SamplerSpec


class SchedulePlan:
    """The plan of a schedule that runs batches one by one, in one process.

    ``loads_in_trainer``: feature rows come from the store of the process that trains.
    """

    loads_in_trainer: ClassVar[bool] = True

    def __init__(self, spec: ScheduleSpec) -> None:
        self._spec = spec

    @property
    def outputs_in_flight(self) -> int:
        """Outputs of the feature store in use at a time, the one being loaded included."""
        return 1

    @property
    def batches_per_update(self) -> int:
        """Batches of one weight update; 0 where updates differ."""
        return 1

    def steady_after(self, window: int) -> int | None:
        """Return after how many batches of an epoch device memory has reached its peak.

        ``window`` batches are sampled before the first of them runs. None: after all of them.
        """
        return 2 * (window + self.outputs_in_flight)

    def alone(self) -> ScheduleSpec:
        """Return the schedule by which one process measures the memory that its batches take."""
        return self._spec

    def adapted_to(self, features: StoreSpec | None) -> ScheduleSpec:
        """Return the spec with the defaults that depend on the feature store."""
        return self._spec

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` if the schedule cannot run with the other stages.

        ``features`` is None for an epoch that only samples.
        """

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Raise ``UnsupportedError`` if layers with ``aggregate`` cannot train in such steps."""
        step = self._spec.step
        if step != EAGER and not aggregate.padded:
            raise UnsupportedError(
                f"schedule.step={step} pads gnnbench's own blocks, and the layers of aggregate"
                f" '{aggregate.name}' take others; take csr or tuned, or step=eager"
            )
        if step == GRAPH and not aggregate.captured:
            raise UnsupportedError(
                f"schedule.step=graph captures work that never waits for the GPU, and aggregate"
                f" '{aggregate.name}' may wait; take csr or tuned, or step=padded"
            )

    def rank_stages(
        self, rank: int, sampler: SamplerSpec, features: StoreSpec | None
    ) -> tuple[SamplerSpec, StoreSpec | None]:
        """Return the stages that gate and audit of a rank use.

        They sample and load the same as the recipe's, and occupy no GPU memory that the rank's own
        part of an epoch does not need.
        """
        return sampler, features

    def rank_schedule(self, rank: int, ranks: int) -> RankSchedule:
        """Return what a rank above 0 runs of an epoch."""
        raise NotImplementedError(f"schedule '{self._spec.name}' has one process")


def plan_of(spec: ScheduleSpec) -> SchedulePlan:
    """Return the plan of a schedule."""
    return spec.plan_type(spec)
