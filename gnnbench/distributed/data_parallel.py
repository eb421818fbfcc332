"""``schedule=data-parallel``: processes train together, each on a shard of every batch's seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.core.stage import option
from gnnbench.distributed.partition.split import HYBRID, NONE, SPLITS, VANILLA, Split
from gnnbench.distributed.producer_spec import (
    ONE,
    THREE,
    TWO,
    ProducerSpec,
    check_device,
    check_sampler,
    limits,
)
from gnnbench.pipelines.schedule import DDP, FLAT, WAYS, Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.training_step import EAGER

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from gnnbench.core.job import Job
    from gnnbench.distributed.rank_schedule import RankSchedule
    from gnnbench.features.spec import StoreSpec
    from gnnbench.models.aggregation import AggregateSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

# Stores that each rank has for itself; they load any batch, in any order.
PER_RANK_STORES = ("host", "uva", "row-copies", "row-copies-together", "gpu", "cache")
DATA_PARALLEL_STORES = (*PER_RANK_STORES, "match", "window", "sharded", "dgl", "pyg")
ORDERS = ("as-drawn",)
AGREED = (*ORDERS, "greedy")  # all ranks use rank 0's
PARTITION_STORES = ("host", "gpu")  # in which a rank stores its own rows
DEFAULT, METIS, METIS_BALANCED = "default", "metis", "metis-balanced"
SPLIT, WHOLE = "split", "whole"


def check_policy(schedule: str, features: StoreSpec) -> None:
    """Raise ``UnsupportedError`` unless each rank fills its cache once, for itself."""
    if features.foresees:
        raise UnsupportedError(
            f"schedule '{schedule}' does not tell ranks an epoch before it is timed; take a"
            " features.policy that is no oracle"
        )


def check_cache(schedule: str, features: StoreSpec) -> None:
    """Raise ``UnsupportedError`` unless each rank fills a cache of equal size, once."""
    check_policy(schedule, features)
    if features.derived:
        raise UnsupportedError(
            f"schedule '{schedule}' does not derive a cache's ratio from memory; give"
            " features.ratio, or features.table.ratio where it is below another store, a number"
        )


class DataParallelPlan(SchedulePlan):
    """Ranks share every batch, or have whole batches of their own."""

    _spec: DataParallel

    @property
    def _own_batches(self) -> int:
        """Batches of an epoch for each one that a rank runs."""
        return self._spec.ranks if self._spec.batches == WHOLE else 1

    @property
    def batches_per_update(self) -> int:
        """One batch, or one of each rank."""
        return self._own_batches

    def steady_after(self, window: int) -> int | None:
        """Return after how many batches of an epoch each rank's memory has reached its peak."""
        own = super().steady_after(window)
        return None if own is None else own * self._own_batches

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` if ranks would not sample what one rank samples, or would run
        batches in different orders."""
        if self._spec.batches == WHOLE:
            self._check_whole(order)
        elif not (sampler.mini_batches and sampler.repeats):
            self._check_own_random_numbers(sampler)
        elif sampler.frontier != "cumulative":
            raise UnsupportedError(
                f"schedule '{self._spec.name}' needs frontier=cumulative: with"
                f" '{sampler.frontier}' the hop at which a node is first met depends on a"
                " batch's other seeds; or schedule.batches=whole"
            )
        if features is not None and features.name not in DATA_PARALLEL_STORES:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' does not run features '{features.name}' yet; take"
                f" one of: {', '.join(DATA_PARALLEL_STORES)}"
            )
        if features is not None:
            check_cache(self._spec.name, features)
            self._check_producers(sampler, features, order, device)
        orders = AGREED if self._spec.partition == NONE else ORDERS
        if order.name not in orders:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' needs all ranks to run batches in one order; instead"
                f" of '{order.name}' take order={' or '.join(orders)}"
            )

        self._check_partition(sampler, features, device)

    def _check_whole(self, order: OrderSpec) -> None:
        """Raise ``UnsupportedError`` if a rank would not know the seeds of an update."""
        if self._spec.gradients == DDP and order.name not in ORDERS:
            raise UnsupportedError(
                "schedule.batches=whole has each rank reorder its own batches, and"
                " schedule.gradients=ddp needs the seeds of all ranks' next batches; take"
                f" gradients=flat, or order={' or '.join(ORDERS)} instead of '{order.name}'"
            )

    def _check_producers(
        self, sampler: SamplerSpec, features: StoreSpec, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` if a rank's producer could not run the rank's batches."""
        spec = self._spec
        if spec.processes == ONE:
            return
        check_sampler(spec, sampler, device)
        if features.name not in PER_RANK_STORES or order.name not in ORDERS:
            raise UnsupportedError(
                f"schedule.processes={spec.processes} has a producer run a rank's batches one by"
                f" one; take features={' or '.join(PER_RANK_STORES)} and order=as-drawn, or"
                " processes=1"
            )

    def _check_own_random_numbers(self, sampler: SamplerSpec) -> None:
        """Raise ``UnsupportedError`` if the ranks' own random numbers cannot be checked."""
        reason = f"sampler '{sampler.name}' has random numbers of its own"
        if self._spec.partition != NONE:
            raise UnsupportedError(
                f"schedule.partition={self._spec.partition} needs draws that know no rank, and"
                f" {reason}; take partition=none, or one of gnnbench's samplers"
            )
        if sampler.pick == "random_walk":
            raise UnsupportedError(
                f"schedule '{self._spec.name}' cannot count the edges that ranks share: random"
                f" walks have no inclusion law, and {reason}; take another pick, or a sampler of"
                " gnnbench"
            )

    def _check_partition(
        self, sampler: SamplerSpec, features: StoreSpec | None, device: str
    ) -> None:
        setting = f"schedule.partition={self._spec.partition}"
        store = features if self._spec.partition in (VANILLA, HYBRID) else None
        if store is not None and store.name not in PARTITION_STORES:
            raise UnsupportedError(
                f"{setting} has each rank copy its own rows, which features '{store.name}' does"
                f" not; take one of: {', '.join(PARTITION_STORES)}"
            )
        if self._spec.partition != VANILLA:
            return
        if sampler.name != "hop-by-hop":
            raise UnsupportedError(
                f"{setting} samples on other ranks hop by hop, and sampler '{sampler.name}' needs"
                " all of the topology; take sampler=hop-by-hop, or partition=hybrid"
            )
        for name in ("row_worker", "id_map", "edges"):
            if getattr(sampler, name) != type(sampler).__dataclass_fields__[name].default:
                raise UnsupportedError(
                    f"{setting} samples with kernels of its own; leave sampler.{name} as it is, or"
                    " take partition=hybrid"
                )
        if sampler.pick == "random_walk":
            raise UnsupportedError(
                f"{setting} would ask other ranks in each step of a random walk; take another pick,"
                " or partition=hybrid"
            )
        topology = sampler.plain()["topology"]
        if topology != ("cpu" if device == "cpu" else "gpu"):
            raise UnsupportedError(
                f"{setting} keeps a rank's edges where it samples, and sampler.topology={topology}"
                " does not; leave it out"
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
        """Return stages that keep nothing of a partitioned graph on the GPU: the partition does."""
        if self._spec.partition in (VANILLA, HYBRID) and features is not None:
            features = features.lean()
        return sampler.lean() if self._spec.partition == VANILLA else sampler, features

    def rank_schedule(self, rank: int, ranks: int) -> RankSchedule:
        """Return a rank's shards of all batches, or its own batches."""
        if self._spec.batches == WHOLE:
            from gnnbench.distributed.whole_batches import WholeBatchSchedule

            return WholeBatchSchedule(rank, ranks, self._spec.gradients, self._spec.producer)
        from gnnbench.distributed.rank_schedule import RankSchedule

        return RankSchedule(rank, ranks, self._spec.gradients)


@dataclass(frozen=True)
class DataParallel(ScheduleSpec):
    """Rank 0 is the worker itself, the others are its processes (``docs/several-gpus.md``).

    Random numbers depend on vertex, hop and batch. So ranks sample what one rank samples, if every
    hop expands all known nodes (``frontier=cumulative``), or if batches are not split.

    ``batches=whole`` is the training of the papers and of DGL's ``DataLoader`` with ``use_ddp``: an
    update has a whole batch of each rank, and an epoch has ceil(batches / ranks) updates. Batch i
    of the epoch is on rank i mod ranks (``gnnbench.distributed.whole_batches``).
    """

    name: ClassVar[str] = "data-parallel"
    summary: ClassVar[str] = (
        "processes train together, each on a stretch of every batch; gradients are averaged"
    )
    plan_type: ClassVar[type[SchedulePlan]] = DataParallelPlan
    ranks: int = option(2, "processes that train together, the worker among them", range(1, 1025))
    partition: str = option(
        NONE,
        "whose seeds a rank draws for, and what it has of the graph (FastSample, section 3.3);"
        " none: a stretch of each batch, all of the graph; else its part's seeds: seeds: all of"
        " the graph; vanilla: its part's topology and features; hybrid: all topology, its part's"
        " features",
        SPLITS,
        added=True,
    )
    method: str = option(
        DEFAULT,
        "of partitioning, into as many parts as ranks: metis (default), metis-balanced (edges are"
        " balanced, too, as in FastSample), random, contiguous",
        (DEFAULT, METIS, METIS_BALANCED, "random", "contiguous"),
        added=True,
    )

    gradients: str = option(
        FLAT,
        "how ranks reduce gradients; flat: one all-reduce after the backward pass; ddp: torch's"
        " DistributedDataParallel, overlapped with it",
        WAYS,
        added=True,
    )
    batches: str = option(
        SPLIT,
        "what a rank trains on; split: a shard of every batch; whole: batches of its own, as in"
        " DGL's and the papers' training on several GPUs, so that an update has a batch of each"
        " rank",
        (SPLIT, WHOLE),
        added=True,
    )

    processes: int = option(
        ONE,
        "processes of a rank, with batches=whole; 1: it runs its phases one after the other; 2: one"
        " samples and gathers while it trains; 3: one samples (on the CPU), one gathers"
        " (PyTorch-Direct, section 3.4)",
        (ONE, TWO, THREE),
        added=True,
    )
    share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves a rank's producer; 100: no MPS",
        range(1, 101),
        added=True,
    )
    trainer_share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves the rank itself; 100: no limit",
        range(1, 101),
        added=True,
    )

    @property
    def producer(self) -> ProducerSpec | None:
        """The options of a rank's producer, None if it has none."""
        return None if self.processes == ONE else self

    def missing(self, device: str) -> Missing | None:
        """Return METIS if it is to partition and missing."""
        if self.partition == NONE or self.method not in (DEFAULT, METIS, METIS_BALANCED):
            return None
        from gnnbench.distributed.partition.metis import metis_missing

        return metis_missing()

    def resolved(self, device: str) -> Self:
        """Return the spec with all defaults. Raises ``UnsupportedError``."""
        made = super().resolved(device)
        check_device(made, device)
        if made.processes != ONE and made.batches != WHOLE:
            raise UnsupportedError(
                f"schedule.processes={made.processes} needs batches that are a rank's own; give"
                " schedule.batches=whole, or processes=1"
            )
        if made.processes == ONE and limits(made):
            raise UnsupportedError(
                "schedule.share and schedule.trainer_share are those of a producer and a trainer;"
                " give schedule.processes=2 or 3, or leave both at 100"
            )
        if made.batches == WHOLE and made.partition != NONE:
            raise UnsupportedError(
                f"schedule.partition={made.partition} gives a rank the seeds of its part, and"
                " schedule.batches=whole gives it all seeds of a batch; take partition=none, or"
                " batches=split"
            )
        if made.partition == NONE:
            if made.method != DEFAULT:
                raise UnsupportedError(
                    f"schedule.method={made.method} partitions, and schedule.partition=none splits"
                    " nothing; take seeds, vanilla or hybrid"
                )
            return made
        return replace(made, method=METIS if made.method == DEFAULT else made.method)

    def build(self, job: Job) -> Schedule:
        """Launch the other ranks."""
        from gnnbench.distributed.launcher import Launcher
        from gnnbench.distributed.rank_schedule import RankSchedule

        if self.batches == WHOLE:
            from gnnbench.distributed.whole_batches import (
                WholeBatchCoordination,
                WholeBatchSchedule,
            )

            own = WholeBatchSchedule(0, self.ranks, self.gradients, self.producer)
            return Launcher(job, own, WholeBatchCoordination(job, self.ranks))
        split = None
        if self.partition != NONE:
            split = Split(self.partition, self.method, job.cell.seed)
        return Launcher(job, RankSchedule(0, self.ranks, self.gradients), split=split)
