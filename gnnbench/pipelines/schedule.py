"""What a schedule is to a recipe (its spec), and what it is given to run an epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import Spec, option

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from torch import Tensor

    from gnnbench.core.counters import Measure
    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.core.rendezvous import Peers
    from gnnbench.distributed.merge import United
    from gnnbench.features.base import FeatureStore
    from gnnbench.features.spec import StoreSpec
    from gnnbench.measure.timeline import Timeline
    from gnnbench.models.aggregation import AggregateSpec
    from gnnbench.pipelines.order import Order, OrderSpec
    from gnnbench.sampling.stage import SamplerSpec, SamplerStage


EAGER, PADDED, GRAPH = STEPS = ("eager", "padded", "graph")  # how a batch is trained on
FLAT, DDP = WAYS = ("flat", "ddp")  # how ranks that share a batch add up their gradients


class Trainer(Protocol):
    """What computes."""

    def prepare(self, batches: Iterable[Batch]) -> dict[Measure, float]:
        """Get ready for batches like these, before the first epoch; what that took."""

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Train on one batch and its feature rows."""


class Learner(Trainer, Protocol):
    """The model and its optimizer; ``gnnbench.systems.runtime.trainer`` is the one of all
    models."""

    losses: list[Tensor]

    def labels_of(self, batch: Batch) -> Tensor:
        """Class of each seed, int64 ``[seeds]``; -1 where there is none, which no loss counts."""

    def learn(self, blocks: Sequence[Any], rows: Tensor, labels: Tensor) -> Tensor:
        """Forward, loss, backward and update; the loss, a scalar on the device."""

    def kept(self) -> list[Tensor]:
        """A copy of all that training changes."""

    def restore(self, kept: Sequence[Tensor]) -> None:
        """Be as when ``kept`` was taken, in the same memory."""


@dataclass
class Stages:
    """The stages of one system; those that ``until`` leaves out are None.

    ``keep`` is to be called with every batch and its rows once its phases are run: the audit looks
    at them again.
    """

    sampler: SamplerStage
    store: FeatureStore | None
    trainer: Trainer | None
    keep: Callable[[Batch, Tensor | None], None]
    order: Order | None = None

    @property
    def peak_bytes(self) -> int:
        """The most of the GPU's memory that they have held in this process."""
        apart = 0 if self.store is None else self.store.bytes_apart
        return self.sampler.job.peak.most + apart

    @property
    def ahead(self) -> int:
        """Batches that are drawn before the first of them is run: whole windows of both stages."""
        if self.order is None or self.store is None:
            return 1
        return math.lcm(self.order.window, self.store.window)

    def arranged(self, drawn: Sequence[Batch], last: Batch | None) -> list[Batch]:
        """Batches drawn ahead in the order in which they are run after ``last``, window by window.

        That is part of memory IO, for whose sake it is done.
        """
        assert self.order is not None
        found: list[Batch] = []
        for first in range(0, len(drawn), self.order.window):
            window = drawn[first : first + self.order.window]
            found += [window[place] for place in self.order.arrange(window, last)]
            last = found[-1]
        return found

    def load(self, drawn: Sequence[Batch], nth: int) -> Tensor:
        """Rows of the ``nth`` of the batches drawn ahead, of which the store is told in time."""
        assert self.store is not None
        if self.ahead > 1 and nth % self.store.window == 0:
            self.store.announce(drawn[nth : nth + self.store.window])
        return self.store.load(drawn[nth])

    def footprint(self, epoch: int) -> Iterator[Tensor]:
        """Input nodes of an epoch's batches, drawn and ordered as they are when it is run."""
        assert self.order is not None
        seeds = self.order.batches(epoch, self.sampler.job.device)
        self.sampler.expect(epoch, seeds)
        last: Batch | None = None
        for first in range(0, len(seeds), self.ahead):
            few = seeds[first : first + self.ahead]
            drawn = [self.sampler.sample(s, epoch, n) for n, s in enumerate(few, first)]
            drawn = self.arranged(drawn, last)
            last = drawn[-1]
            yield from (batch.input_nodes for batch in drawn)


class Schedule(ABC):
    """What runs the epochs of one system, and leaves the clock to the timeline.

    ``peak_bytes`` is the peak of memory that it takes in other processes; ``peers`` are those that
    build the same stages beside this one; ``told`` what attaching the stages took and made, rows of
    (stage, measure, where, value).
    """

    peak_bytes: int = 0
    peers: Peers | None = None
    told: Sequence[list[Any]] = ()

    def look(self, looks: bool) -> None:  # noqa: B027
        """Whether every batch is being looked at: processes of its own are to look at theirs."""

    def parts(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Of an epoch's batches the seeds that this process draws for, batch by batch."""
        return list(batches)

    def trained(self, batches: int) -> int:
        """Of so many batches of an epoch those that this process trained on."""
        return batches

    def united(self, epoch: int, reason: str) -> United | None:
        """What all processes together did in the last epoch, where each has but a part of it.

        ``reason`` is what was found wrong with the part of this one.
        """
        return None

    def attach(self, stages: Stages) -> None:  # noqa: B027
        """Make what needs the stages, which are built."""

    def ready(self) -> None:  # noqa: B027
        """Wait for what was begun when it was built; the stages are there."""

    def compared(self, epoch: int, batches: Sequence[Tensor]) -> str:
        """What is wrong with batches of these seeds where it draws or loads them otherwise than by
        the stages that the gate looks at, or ""."""
        return ""

    def drawn_apart(
        self, sampler: SamplerStage, batches: Sequence[Tensor]
    ) -> tuple[float, float] | None:
        """Edges and nodes a seed, of batches of these seeds, where its processes together draw
        others than one process would."""
        return None

    def foresee(self, epoch: int) -> None:  # noqa: B027
        """Get ready for ``epoch``, which is run next, with stages of its own that are oracles."""

    @abstractmethod
    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the batches of one epoch as far as ``until``, a span for every phase of a batch."""

    def close(self) -> None:  # noqa: B027
        """Give back what it took."""


@dataclass(frozen=True)
class ScheduleSpec(Spec):
    """A schedule as a recipe names it.

    ``step``: ``eager`` launches a training step's kernels one by one; ``padded`` does on batches
    padded to one shape, ``graph`` replays a CUDA graph of that (``gnnbench.pipelines.padded``
    and ``captured``). ``fetches``: whether rows are what the store of the trainer's process loads.
    """

    kind: ClassVar[str] = "schedule"
    fetches: ClassVar[bool] = True

    step: str = option(
        EAGER, "a training step: its kernels launched one by one (eager), on batches padded to one"
        " shape (padded), or replayed as a CUDA graph of that (graph)", STEPS, added=True,
    )  # fmt: skip

    def resolved(self, device: str) -> Self:
        """The same; a CUDA graph is one of a GPU. Raises ``UnsupportedError``."""
        if self.step == GRAPH and device == "cpu":
            raise UnsupportedError(
                "schedule.step=graph needs a GPU; give --device cuda, or step=padded, which pads"
                " without a graph"
            )
        return super().resolved(device)

    @property
    def together(self) -> int:
        """Batches of one update; 0 where that is not the same in all updates."""
        return 1

    @property
    def held(self) -> int:
        """Results of the feature store that it holds at a time, the one being loaded included."""
        return 1

    def fills(self, ahead: int) -> int | None:
        """After how many of an epoch's batches there are as many on the device as there will ever
        be, where ``ahead`` are drawn before the first of them is run; None: after all of them."""
        return 2 * (ahead + self.held)

    def beside(self, features: StoreSpec | None) -> Self:
        """The same with the defaults put in that depend on the feature store."""
        return self

    def check(self, sampler: SamplerSpec, features: StoreSpec | None) -> None:
        """Raise ``UnsupportedError`` where it cannot run with the other stages."""

    def check_split(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` where batches cannot be split among processes as it does."""

    def check_step(self, aggregate: AggregateSpec) -> None:
        """Raise ``UnsupportedError`` where layers over ``aggregate`` cannot train in such steps."""
        if self.step != EAGER and not aggregate.padded:
            raise UnsupportedError(
                f"schedule.step={self.step} pads gnnbench's own blocks, and the layers of aggregate"
                f" '{aggregate.name}' take others; take csr or tuned, or step=eager"
            )
        if self.step == GRAPH and not aggregate.captured:
            raise UnsupportedError(
                f"schedule.step=graph captures work that never waits for the GPU, and aggregate"
                f" '{aggregate.name}' may wait; take csr or tuned, or step=padded"
            )

    def stages_of(
        self, rank: int, sampler: SamplerSpec, features: StoreSpec | None
    ) -> tuple[SamplerSpec, StoreSpec | None]:
        """What a rank is built with: leaner stages, of the same draws and rows, where its part of
        an epoch goes by others. Gate and audit look by them."""
        return sampler, features

    def part(self, rank: int, ranks: int) -> Schedule:
        """What a rank above 0 runs of an epoch, where several processes do."""
        raise NotImplementedError(f"schedule '{self.name}' has one process")

    def begin(self, cell: Cell) -> None:
        """Start what takes long and needs nothing of this process, which has not imported torch
        yet; ``build`` takes it over."""

    @abstractmethod
    def build(self, job: Job) -> Schedule:
        """What runs the epochs of a cell."""


@dataclass(frozen=True)
class DirectSchedule(ScheduleSpec, Schedule):
    """A schedule that keeps nothing between epochs: the spec itself runs them."""

    def build(self, job: Job) -> Schedule:
        """As it stands."""
        return self
