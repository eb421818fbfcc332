"""Which batches of a timed epoch are checked: a random choice that both sides make alike."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from gnnbench.core.cell import Cell, Until

# Batches of an epoch that are copied on average, all batches of a shorter epoch; fewer where copies
# would take more than ``SHARE`` of the epoch. Of a copy: seconds of the smallest, and of each edge
# and node, twice what ``overhead`` of tests/trust measures; of a GPU, of any.
COPIED_BATCHES = {Until.SAMPLE: 1.0, Until.MEMORY_IO: 2.0, Until.COMPUTE: 2.0}
COPY_S = {"cpu": 1e-4, "cuda": 3e-4}
ELEMENT_S = {"cpu": 2e-9, "cuda": 0.0}
SHARE = 0.005


@dataclass(frozen=True)
class BatchChoice:
    """Chooses ``count`` batches of an epoch on average; none without a ``key``.

    Half of them by the key, so that both sides of a pair check the same batches; the others by
    numbers that are drawn once a batch has run, so that no stage can know them before. The key
    never chooses more than half of an epoch on average: a stage that knows it does not know all.
    """

    key: str = ""
    count: float = 0.0

    def has(self, position: int, batches: int) -> bool:
        """Whether the key chooses the batch at a position of an epoch of ``batches``."""
        if not self.key:
            return False
        word = hashlib.blake2b(b"%d" % position, key=self.key.encode(), digest_size=8).digest()
        return int.from_bytes(word, "little") * batches < min(self.count, batches) / 2 * 2**64

    def draws(self, batches: int) -> bool:
        """Whether a new random number chooses a batch that has run."""
        return bool(self.key) and secrets.randbits(64) * batches < self.count / 2 * 2**64


NO_BATCHES = BatchChoice()


def copy_s(device: str, elements: float) -> float:
    """Return at most how long a copy of a batch takes (s); ``elements``: its edges and nodes."""
    return COPY_S[device] + ELEMENT_S[device] * elements


def copied_batches(cell: Cell, epoch_s: float, elements: float) -> float:
    """Return how many batches of an epoch of ``epoch_s`` seconds are copied on average.

    ``elements``: edges and nodes of a batch.
    """
    wanted = COPIED_BATCHES[cell.goes_until]
    return min(wanted, SHARE * epoch_s / copy_s(cell.device, elements))
