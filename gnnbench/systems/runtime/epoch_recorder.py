"""Records what an epoch ran, for the audit."""

from __future__ import annotations

from torch import Tensor

from gnnbench.core.batch_choice import NO_BATCHES, BatchChoice
from gnnbench.core.minibatch import Batch, Sizes
from gnnbench.systems.runtime.spot_checks import CheckedBatch, block_types
from gnnbench.systems.runtime.verification import Verifier


class EpochRecorder:
    """Keeps the sizes of every batch of an epoch, copies of some, and the last one's rows.

    ``batches`` are (batch number, sizes) in the order in which they ran; ``copies`` are the copied
    batches with their positions in it. ``last`` has the nodes and rows of the last batch.
    ``row_types`` are the types of all batches' rows, ``block_types`` those of what their blocks
    contain, if ``reads_blocks`` is set: for samplers of others, whose batches could compute when
    they are read. ``verifier``, where it is set, checks every batch before its buffers are reused.
    """

    reads_blocks = False

    def __init__(self) -> None:
        self.batches: list[tuple[int, Sizes]] = []
        self.copies: list[tuple[int, CheckedBatch]] = []
        self.row_types: set[type] = set()
        self.block_types: set[type] = set()
        self.last: tuple[Tensor, Tensor] | None = None
        self._choice, self._epoch_batches = NO_BATCHES, 0
        self.verifier: Verifier | None = None

    def begin(self, choice: BatchChoice, batches: int) -> None:
        """Begin an epoch of ``batches``, of which ``choice`` is copied."""
        self._choice, self._epoch_batches = choice, batches

    def record(self, batch: Batch, rows: Tensor | None) -> None:
        """Record a batch and its feature rows; schedules call this after each batch."""
        position = len(self.batches)
        if self.verifier is not None:
            self.verifier.check(CheckedBatch.whole(batch, rows, position))
        elif self._is_chosen(position):
            self.copies.append((position, CheckedBatch.copy_of(batch, rows, batch.number)))
        if self.reads_blocks:
            self.block_types |= block_types(batch)
        self.batches.append((batch.number, batch.sizes()))
        if rows is not None:
            self.row_types.add(type(rows))
            self.last = batch.input_nodes, rows

    def _is_chosen(self, position: int) -> bool:
        choice, batches = self._choice, self._epoch_batches
        return choice.has(position, batches) or choice.draws(batches)

    def take_batches(self) -> list[tuple[int, Sizes]]:
        """Return the batches since the last call."""
        batches, self.batches = self.batches, []
        return batches

    def take_copies(self) -> list[tuple[int, CheckedBatch]]:
        """Return the copied batches since the last call; they are then freed."""
        copies, self.copies = self.copies, []
        return copies

    def take_types(self) -> tuple[set[type], set[type]]:
        """Return the types of rows and of blocks' contents since the last call."""
        types = self.row_types, self.block_types
        self.row_types, self.block_types = set(), set()
        return types

    def take_last(self) -> tuple[Tensor, Tensor] | None:
        """Return nodes and rows of the last batch once; they are then freed."""
        last, self.last = self.last, None
        return last

    def clear(self) -> None:
        """Drop all batches."""
        self.batches, self.copies, self.last = [], [], None
        self.take_types()
