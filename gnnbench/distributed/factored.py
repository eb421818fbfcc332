"""Samplers and Trainers apart, bridged by a bounded queue (GNNLab, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.distributed.data_parallel import ORDERS, OWN_STORES, check_cache
from gnnbench.pipelines.schedule import EAGER, Schedule, ScheduleSpec
from gnnbench.pipelines.serial import Serial

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.distributed.ranks import Part
    from gnnbench.features.spec import StoreSpec
    from gnnbench.models.aggregation import AggregateSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

GIVEN, AUTO = "given", "auto"


@dataclass(frozen=True)
class Factored(ScheduleSpec):
    """Rank 0, the worker itself, and the ranks after it train; the others sample
    (``docs/several-gpus.md``). Batches are drawn whole and trained on whole."""

    name: ClassVar[str] = "factored"
    summary: ClassVar[str] = (
        "some processes sample, others fetch and train, a bounded queue between them (GNNLab)"
    )
    samplers: int = option(1, "processes that sample", range(1, 1024))
    trainers: int = option(1, "processes that train, the worker among them", range(1, 1024))
    allocation: str = option(
        GIVEN,
        "given: as many of each as asked for; auto: samplers + trainers processes, divided by"
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

    @property
    def held(self) -> int:
        """The rows that are trained on, and those ahead."""
        return self.depth + 1

    @property
    def together(self) -> int:
        """One batch of each trainer; who stands by adds to that."""
        fixed = self.allocation == GIVEN and not self.standby
        return self.trainers if fixed else 0

    def check_split(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` where several samplers would not draw what one draws, or
        batches are run in an order of their own."""
        if not (sampler.mini_batches and sampler.repeats):
            raise UnsupportedError(
                f"schedule '{self.name}' needs draws that know no rank, in blocks of gnnbench's"
                f" own, and sampler '{sampler.name}' has others; take one of gnnbench's samplers"
            )
        if order.name not in ORDERS:
            raise UnsupportedError(
                f"schedule '{self.name}' hands out batches one by one; take order=as-drawn instead"
                f" of '{order.name}'"
            )
        if features is None:
            return
        if features.name not in OWN_STORES:
            raise UnsupportedError(
                f"schedule '{self.name}' does not run features '{features.name}': which batch a"
                f" trainer has next is not known before; take one of: {', '.join(OWN_STORES)}"
            )
        check_cache(self.name, features)

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Gradients are averaged between backward and update, which no captured step does."""
        if self.step != EAGER:
            raise UnsupportedError(
                f"schedule '{self.name}' averages gradients within a step; take step=eager"
            )

    def stages_of(
        self, rank: int, sampler: SamplerSpec, features: StoreSpec | None
    ) -> tuple[SamplerSpec, StoreSpec | None]:
        """GNNLab's Trainers hold no topology: what ranks their caches, what gates the worker and
        what audits draws out of the host's memory. With ``auto`` it is not known yet who trains;
        the last rank, which measures, samples in any case, and others are given the topology when
        they are told that they do. Where only samples are drawn nobody trains."""
        samplers = self.samplers if self.allocation == GIVEN else 1
        trains = features is not None and rank < self.samplers + self.trainers - samplers
        return sampler.lean() if trains else sampler, features

    def part(self, rank: int, ranks: int) -> Part:
        """A rank whose role is told when all meet."""
        from gnnbench.distributed.executor import Executor

        return Executor(rank, ranks)

    def build(self, job: Job) -> Schedule:
        """Start the other ranks. Where only samples are drawn nobody trains on them: that is
        serial, in one process."""
        from gnnbench.distributed.allocation import Allocation
        from gnnbench.distributed.dispatcher import Dispatcher

        if job.cell.goes_until is Until.SAMPLE:
            return Serial()
        wanted, auto = Allocation(self.samplers, self.trainers), self.allocation == AUTO
        return Dispatcher(job, wanted, auto, self.queue, self.depth, self.standby)
