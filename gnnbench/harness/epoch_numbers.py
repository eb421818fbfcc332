"""Random numbers of a trial's epochs, and who gets them before the epoch runs: oracles alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

from gnnbench.core.cell import Cell
from gnnbench.harness.environment import cell_facts
from gnnbench.harness.process import WorkerProcess
from gnnbench.harness.protocol import EPOCH_NUMBERS, FORESEE
from gnnbench.harness.trial_context import TrialContext


def random_epoch() -> int:
    """Return a number that no worker can guess."""
    return secrets.randbelow(EPOCH_NUMBERS)


class EpochNumbers:
    """Numbers of a trial's measured rounds.

    A number is drawn when its round begins, or earlier if an oracle of the trial prepares for
    several epochs at once. Until then it exists in the memory of the harness and of that oracle
    only.
    """

    def __init__(self) -> None:
        self._drawn: list[int] = []

    def of_round(self, nth: int) -> int:
        """Return the number of the ``nth`` measured round."""
        return self.block(nth, 1)[0]

    def block(self, nth: int, length: int) -> list[int]:
        """Return the numbers of the block that contains the ``nth`` round.

        Blocks have ``length`` rounds each; the last one may have more numbers than the trial has
        rounds.
        """
        first = nth - nth % length
        while len(self._drawn) < first + length:
            self._drawn.append(random_epoch())
        return self._drawn[first : first + length]


class Oracles:
    """Gives the oracles among a trial's workers the numbers of the next epochs."""

    def __init__(self, context: TrialContext, numbers: EpochNumbers) -> None:
        self._context, self._numbers = context, numbers
        self._given: dict[int, list[int]] = {}  # blocks of several epochs, by process id

    def prepare(self, cell: Cell, worker: WorkerProcess, epoch: int, nth: int) -> None:
        """Prepare an oracle for ``epoch``, before the clock runs; do nothing for other cells.

        ``nth``: the measured round that runs now, or next if ``epoch`` is not measured. An oracle
        for several epochs is prepared once for each block of measured rounds, and not for others.
        """
        length = cell_facts(cell).foresees
        if length < 2:
            foresee_epoch(self._context, cell, worker, epoch)
            return
        block = self._numbers.block(nth, length)
        if self._given.get(worker.pid) != block:
            _send(self._context, cell, worker, block)
            self._given[worker.pid] = block


def foresee_epoch(context: TrialContext, cell: Cell, worker: WorkerProcess, epoch: int) -> None:
    """Prepare an oracle for a single epoch, before the clock runs."""
    if cell_facts(cell).foresees == 1:
        _send(context, cell, worker, [epoch])


def _send(context: TrialContext, cell: Cell, worker: WorkerProcess, epochs: Sequence[int]) -> None:
    context.attempt(cell, partial(worker.call, FORESEE, epochs=list(epochs)))
