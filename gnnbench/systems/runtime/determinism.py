"""Whether a training step gives the same bits when it is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch
from gnnbench.pipelines.schedule import Stages

TIMES = 3  # atomics that come in the same order twice may not do so again


class Training(Protocol):
    """A trainer whose steps can be undone (``gnnbench.systems.runtime.trainer.Trainer``)."""

    def take_losses(self) -> list[float]:
        """Losses of the steps since the last call."""
        ...

    def kept(self) -> list[Tensor]:
        """A copy of all that a step changes."""
        ...

    def restore(self, kept: Sequence[Tensor]) -> None:
        """Be as then."""
        ...


def same_bits(stages: Stages, trainer: Training, batch: Batch) -> bool:
    """Whether ``TIMES`` steps as they are timed, each on ``batch`` and from the same weights, have
    the same loss and leave the same parameters and moments of their gradients, bit for bit.

    False proves that a step is not deterministic; true, that no difference was seen. The model is
    then as it was.
    """
    assert stages.store is not None and stages.trainer is not None
    rows = stages.store.load(batch)
    before, first = trainer.kept(), None
    for _ in range(TIMES):
        stages.trainer.step(batch, rows)
        found = [torch.tensor(trainer.take_losses()), *trainer.kept()]
        trainer.restore(before)
        first = first or found
        if not all(map(_equal, first, found)):
            return False
    return True


def _equal(one: Tensor, other: Tensor) -> bool:
    """Bit for bit: a NaN is itself, and 0 is not -0."""
    a, b = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    return torch.equal(a, b)
