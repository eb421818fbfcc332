"""The trainer's interface that ranks need to share batches or to verify their steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from gnnbench.pipelines.training_step import TrainingStep

if TYPE_CHECKING:
    from torch import Tensor, nn

    from gnnbench.core.minibatch import Batch
    from gnnbench.distributed.process_group import RankGroup
    from gnnbench.pipelines.schedule import Stages


class RankTrainer(TrainingStep, Protocol):
    """A model with its optimizer (``gnnbench.systems.runtime.trainer.ModelTrainer``)."""

    model: nn.Module
    losses: list[Tensor]
    group: RankGroup | None

    def labels_at(self, seeds: Tensor) -> Tensor:
        """Return the class of each of these nodes, int64 ``[seeds]``; -1 where it has none."""

    def step_of_nothing(self) -> Tensor:
        """Take part in the update of a batch of which this rank has no seeds."""

    def learn_in_one(self, batches: Iterable[tuple[Batch, Tensor]]) -> list[float]:
        """Make one update from several batches; returns their losses."""

    def state(self) -> list[Tensor]:
        """Return all tensors that training changes, without a copy."""

    def stamp(self) -> tuple[int, ...]:
        """Return version numbers that change with every write to the state."""

    def kept(self) -> list[Tensor]:
        """Return a copy of all that training changes."""

    def restore(self, kept: Sequence[Tensor]) -> None:
        """Write the state that ``kept`` returned back to the same memory."""

    def jitter(self, seed: int) -> None:
        """Perturb the parameters by one rounding step."""


def rank_trainer(stages: Stages) -> RankTrainer | None:
    """Return the trainer of the stages, None for an epoch that does not train."""
    return cast("RankTrainer | None", stages.trainer)
