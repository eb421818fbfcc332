"""Records what an epoch ran, for the audit."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.minibatch import Batch, Sizes
from gnnbench.systems.runtime.verification import Verifier


class EpochRecorder:
    """Keeps the sizes of every batch of an epoch, and the last batch with its rows.

    ``batches`` are (batch number, sizes) in the order in which they ran. ``verifier``, where it is
    set, checks every batch before its buffers are reused.
    """

    def __init__(self) -> None:
        self.batches: list[tuple[int, Sizes]] = []
        self.last: tuple[Batch, Tensor] | None = None
        self.verifier: Verifier | None = None

    def record(self, batch: Batch, rows: Tensor | None) -> None:
        """Record a batch and its feature rows; schedules call this after each batch."""
        if self.verifier is not None:
            self.verifier.check(batch, rows)
        self.batches.append((batch.number, batch.sizes()))
        if rows is not None:
            self.last = batch, rows

    def take_batches(self) -> list[tuple[int, Sizes]]:
        """Return the batches since the last call."""
        batches, self.batches = self.batches, []
        return batches

    def take_last(self) -> tuple[Batch, Tensor] | None:
        """Return the last batch and its rows once; they are then freed."""
        last, self.last = self.last, None
        return last

    def clear(self) -> None:
        """Drop all batches."""
        self.batches, self.last = [], None
