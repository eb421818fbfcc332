"""Interfaces of what a schedule calls to train on one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.counters import Metric
    from gnnbench.core.minibatch import Batch
    from gnnbench.kernels.dropout import Masks

EAGER, PADDED, GRAPH = STEPS = ("eager", "padded", "graph")  # kinds of training steps


class TrainingStep(Protocol):
    """Trains on one batch at a time."""

    def prepare(self, batches: Iterable[Batch]) -> dict[Metric, float]:
        """Prepare for batches like these before the first epoch; returns what that cost."""

    def step(self, batch: Batch, rows: Tensor) -> None:
        """Train on one batch and its feature rows."""


class Learner(TrainingStep, Protocol):
    """A model with its optimizer (``gnnbench.systems.runtime.trainer``)."""

    losses: list[Tensor]

    def labels_of(self, batch: Batch) -> Tensor:
        """Return the class of each seed, int64 ``[seeds]``; the loss ignores -1 (no label)."""

    def masks_of(self, batch: Batch) -> Masks | None:
        """Return the dropout masks of a batch of the present epoch; None without dropout."""

    def learn(
        self, blocks: Sequence[object], rows: Tensor, labels: Tensor, masks: Masks | None = None
    ) -> Tensor:
        """Run forward, loss, backward and update; returns the loss, a scalar on the device."""

    def kept(self) -> list[Tensor]:
        """Return a copy of all that training changes."""

    def restore(self, kept: Sequence[Tensor]) -> None:
        """Write the state that ``kept`` returned back to the same memory."""
