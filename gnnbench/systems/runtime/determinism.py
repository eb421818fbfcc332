"""Whether a repeated training step gives the same bits."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch
from gnnbench.pipelines.schedule import Stages
from gnnbench.systems.runtime.trainer import ModelTrainer

STEPS = 3  # atomics that run in the same order twice may not do so a third time


def is_deterministic(stages: Stages, trainer: ModelTrainer, batch: Batch) -> bool:
    """Repeat a timed step from the same weights and compare all results bit by bit.

    Compares loss, parameters and gradient moments of ``STEPS`` steps on ``batch``. False proves
    that a step is not deterministic; True means that no difference was seen. Restores the model.
    """
    assert stages.store is not None and stages.trainer is not None
    rows = stages.store.load(batch)
    before, first = trainer.kept(), None
    for _ in range(STEPS):
        stages.trainer.step(batch, rows)
        result = [torch.tensor(trainer.take_losses()), *trainer.kept()]
        trainer.restore(before)
        first = first or result
        if not all(map(_same_bits, first, result)):
            return False
    return True


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Compare bit by bit: a NaN equals itself, and 0 differs from -0."""
    a, b = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    return torch.equal(a, b)
