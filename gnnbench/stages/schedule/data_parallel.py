"""Several processes train together, each on its stretch of every batch's seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.cache.size import AUTO
from gnnbench.errors import UnsupportedError
from gnnbench.stages.schedule.base import EAGER, Schedule, ScheduleSpec
from gnnbench.stages.spec import option

if TYPE_CHECKING:
    from gnnbench.stages.aggregate import AggregateSpec
    from gnnbench.stages.features.spec import StoreSpec
    from gnnbench.stages.job import Job
    from gnnbench.stages.order import OrderSpec
    from gnnbench.stages.sampler.base import SamplerSpec
    from gnnbench.stages.schedule.ranks import Part

# Of each rank alone; they give rows of any batch, in any order.
OWN_STORES = ("host", "uva", "gpu", "cache")
STORES = (*OWN_STORES, "sharded")
ORDERS = ("as-drawn",)


def check_cache(schedule: str, features: StoreSpec) -> None:
    """Raise ``UnsupportedError`` where a cache is not filled once, by each rank for itself."""
    if features.foresees:
        raise UnsupportedError(
            f"schedule '{schedule}' does not tell ranks an epoch before it is timed; take a"
            " features.policy that is no oracle"
        )
    if getattr(features, "ratio", None) == AUTO:
        raise UnsupportedError(
            f"schedule '{schedule}' does not derive a cache's ratio from memory; give"
            " features.ratio a number"
        )


@dataclass(frozen=True)
class DataParallel(ScheduleSpec):
    """Rank 0 is the worker itself, the others are its processes (``docs/several-gpus.md``).

    Draws are keyed by vertex, hop and batch, so ranks draw what one rank draws of a batch where
    every hop expands all nodes known (``frontier=cumulative``).
    """

    name: ClassVar[str] = "data-parallel"
    summary: ClassVar[str] = (
        "processes train together, each on a stretch of every batch; gradients are averaged"
    )
    ranks: int = option(2, "processes that train together, the worker among them", range(1, 1025))

    def check_split(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec
    ) -> None:
        """Raise ``UnsupportedError`` where ranks would not draw what one rank draws, or would run
        batches in orders of their own."""
        if not (sampler.mini_batches and sampler.repeats):
            raise UnsupportedError(
                f"schedule '{self.name}' needs draws that know no rank, and sampler"
                f" '{sampler.name}' has random numbers of its own; take one of gnnbench's samplers"
            )
        if sampler.frontier != "cumulative":
            raise UnsupportedError(
                f"schedule '{self.name}' needs frontier=cumulative: with '{sampler.frontier}' the"
                " hop at which a node is first met depends on a batch's other seeds"
            )
        if features is not None and features.name not in STORES:
            raise UnsupportedError(
                f"schedule '{self.name}' does not run features '{features.name}' yet; take one of:"
                f" {', '.join(STORES)}"
            )
        if features is not None:
            check_cache(self.name, features)
        if order.name not in ORDERS:
            raise UnsupportedError(
                f"schedule '{self.name}' needs all ranks to run batches in one order; take"
                f" order=as-drawn instead of '{order.name}'"
            )

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Gradients are averaged between backward and update, which no captured step does."""
        if self.step != EAGER:
            raise UnsupportedError(
                f"schedule '{self.name}' averages gradients within a step; take step=eager"
            )

    def part(self, rank: int, ranks: int) -> Part:
        """A rank's stretch of every batch."""
        from gnnbench.stages.schedule.ranks import Part

        return Part(rank, ranks)

    def build(self, job: Job) -> Schedule:
        """Start the other ranks."""
        from gnnbench.stages.schedule.leader import Leader

        return Leader(job, self.ranks)
