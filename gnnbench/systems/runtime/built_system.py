"""The parts of a system that its gate, audit and diagnostics use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.cell import Until
    from gnnbench.core.job import Job
    from gnnbench.measure.timeline import Timeline
    from gnnbench.pipelines.order import Order
    from gnnbench.pipelines.schedule import Schedule, Stages
    from gnnbench.systems.runtime.epoch_recorder import EpochRecorder
    from gnnbench.systems.runtime.recipe import Recipe
    from gnnbench.systems.runtime.trainer import ModelTrainer

# Wraps what is built for a stage: ``sampler``, ``features`` or ``training``.
BuildWatch = Callable[[str], AbstractContextManager[None]]


class BuiltSystem(Protocol):
    """A system that executes a recipe (``gnnbench.systems.runtime.runner.SystemRunner``)."""

    job: Job
    recipe: Recipe
    order: Order
    until: Until
    stages: Stages
    schedule: Schedule
    trainer: ModelTrainer | None
    recorder: EpochRecorder
    gate_law: str  # name of the sampler's law at the gate, "" before

    def setup(self, watch: BuildWatch) -> None:
        """Build the stages, each inside ``watch``."""

    def seeds(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches."""

    def foresee(self, epochs: Sequence[int]) -> None:
        """Fill the cache of an oracle for ``epochs``."""

    def run_unmeasured(
        self, epoch: int, max_batches: int | None = None, timeline: Timeline | None = None
    ) -> int:
        """Run an epoch that is neither timed nor audited.

        Returns the peak memory of the schedule's other processes, in bytes.
        """

    def close(self) -> None:
        """Free the stages."""


def is_oracle(system: BuiltSystem) -> bool:
    """Whether the feature store must be given numbers of epochs before they run."""
    return bool(foreseen_epochs(system))


def foresee_untimed(system: BuiltSystem, epoch: int) -> None:
    """Fill the cache of an oracle for ``epoch``, which is not timed; do nothing for others.

    An oracle for K epochs is filled for the K - 1 following numbers, too.
    """
    if count := foreseen_epochs(system):
        system.foresee(range(epoch, epoch + count))


def foreseen_epochs(system: BuiltSystem) -> int:
    """Number of epochs for which the feature store prepares at once; 0 unless it is an oracle."""
    features = system.recipe.features
    return 0 if features is None else features.foresees
