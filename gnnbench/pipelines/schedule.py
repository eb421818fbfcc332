"""The schedule stage: its spec in a recipe, and the object that runs the epochs of one cell."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import Spec, option
from gnnbench.pipelines.rank_audit import RankAudit
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.training_step import EAGER, GRAPH, STEPS

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11: workers run on 3.10 too

    from torch import Tensor

    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.core.rendezvous import Peers
    from gnnbench.features.base import FeatureStore
    from gnnbench.measure.timeline import Timeline
    from gnnbench.pipelines.order import Order
    from gnnbench.pipelines.training_step import TrainingStep
    from gnnbench.sampling.stage import SamplerStage

FLAT, DDP = WAYS = ("flat", "ddp")  # how ranks that share a batch reduce their gradients


@dataclass
class Stages:
    """The built stages of one system; None for those that an epoch ending with ``until`` lacks.

    The schedule calls ``keep`` with each batch and its rows after the batch's phases have run: the
    audit checks them again.
    """

    sampler: SamplerStage
    store: FeatureStore | None
    trainer: TrainingStep | None
    keep: Callable[[Batch, Tensor | None], None]
    order: Order | None = None

    @property
    def peak_bytes(self) -> int:
        """Peak GPU memory of the stages in this process, in bytes."""
        separate = 0 if self.store is None else self.store.bytes_apart
        return self.sampler.job.peak.most + separate

    @property
    def window(self) -> int:
        """Batches that are sampled before the first of them runs.

        The least number that is made of whole windows of both order and store.
        """
        if self.order is None or self.store is None:
            return 1
        return math.lcm(self.order.window, self.store.window)

    def reorder(self, sampled: Sequence[Batch], last: Batch | None) -> list[Batch]:
        """Return the batches in the order in which they run after ``last``, window by window.

        Call it inside a span of memory IO, whose time it saves.
        """
        assert self.order is not None
        reordered: list[Batch] = []
        for first in range(0, len(sampled), self.order.window):
            window = sampled[first : first + self.order.window]
            reordered += [window[position] for position in self.order.arrange(window, last)]
            last = reordered[-1]
        return reordered

    def put_aside(self, batch: Batch) -> Batch:
        """Return a sampled batch of a window in the form in which it waits for the others."""
        return batch if self.order is None else self.order.put_aside(batch)

    def take(self, sampled: list[Batch], index: int) -> Batch:
        """Return ``sampled[index]``, which runs next; call it before :meth:`load`."""
        return sampled[index] if self.order is None else self.order.take(sampled, index)

    def stepped(self, batch: Batch) -> None:
        """Free what a training step made of the batch, where the order says so."""
        if self.order is not None:
            self.order.stepped(batch)

    def release(self, sampled: list[Batch], index: int) -> None:
        """Free what ``sampled[index]``, which ran, no longer needs."""
        if self.order is not None:
            self.order.release(sampled, index)

    def load(self, sampled: Sequence[Batch], index: int) -> Tensor:
        """Load the rows of ``sampled[index]``; announces each window of batches to the store."""
        assert self.store is not None
        if self.window > 1 and index % self.store.window == 0:
            self.store.announce(sampled[index : index + self.store.window])
        return self.store.load(sampled[index])

    def footprint(self, epoch: int) -> Iterator[Tensor]:
        """Yield the input nodes of an epoch's batches, sampled and ordered as when it runs."""
        assert self.order is not None
        seeds = self.order.batches(epoch, self.sampler.job.device)
        self.sampler.expect(epoch, seeds)
        last: Batch | None = None
        for first in range(0, len(seeds), self.window):
            window = seeds[first : first + self.window]
            sampled = [self.sampler.sample(s, epoch, n) for n, s in enumerate(window, first)]
            sampled = self.reorder(sampled, last)
            last = sampled[-1]
            yield from (batch.input_nodes for batch in sampled)


class Schedule(ABC):
    """Runs the epochs of one system. The timeline has the clock.

    An author implements ``epoch``; a schedule with processes or memory of its own also ``start``
    and ``close``.

    Attributes:
        peak_bytes: peak memory of the schedule's other processes.
        peers: the ranks that build the same stages at the same time, if there are any.
        setup_counts: measures of ``start``, rows of (stage, measure, where, value).
        rank_audit: what gate and audit ask of a schedule whose ranks share an epoch.
    """

    peak_bytes: int = 0
    peers: Peers | None = None
    setup_counts: Sequence[list[str | float]] = ()
    rank_audit: RankAudit = RankAudit()

    def start(self, stages: Stages) -> None:  # noqa: B027
        """Take the stages, which are built, and wait for processes that ``build`` started.

        Raises what these processes failed by.
        """

    def foresee(self, epochs: Sequence[int]) -> None:  # noqa: B027
        """Prepare for ``epochs``, which run next, if stages in other processes are oracles."""

    @abstractmethod
    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the batches of one epoch up to phase ``until``, with a span for each phase.

        ``batches``: the seeds of each batch, int64 ``[seeds]``.
        """

    def close(self) -> None:  # noqa: B027
        """Free memory and end processes."""


@dataclass(frozen=True)
class ScheduleSpec(Spec):
    """A schedule in a recipe. An author implements ``build``.

    ``step``: ``eager`` launches the kernels of a training step one by one; ``padded`` does so on
    batches padded to one shape (``gnnbench.pipelines.padded``); ``graph`` replays a CUDA graph of
    the padded step (``gnnbench.pipelines.cuda_graph``). ``plan_type`` is the class of the
    schedule's plan (``gnnbench.pipelines.schedule_plan``).
    """

    kind: ClassVar[str] = "schedule"
    plan_type: ClassVar[type[SchedulePlan]] = SchedulePlan

    step: str = option(
        EAGER, "a training step: its kernels launched one by one (eager), on batches padded to one"
        " shape (padded), or replayed as a CUDA graph of that (graph)", STEPS, added=True,
    )  # fmt: skip

    def resolved(self, device: str) -> Self:
        """Return the spec with all defaults. Raises ``UnsupportedError``, also for a graph on a
        CPU."""
        if self.step == GRAPH and device == "cpu":
            raise UnsupportedError(
                "schedule.step=graph needs a GPU; give --device cuda, or step=padded, which pads"
                " without a graph"
            )
        return super().resolved(device)

    @abstractmethod
    def build(self, job: Job) -> Schedule:
        """Build the schedule of a cell; ``self`` is resolved."""
