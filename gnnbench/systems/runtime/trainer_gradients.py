"""Gradients of a trainer's layers, for the gate."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.systems.runtime.trainer import ModelTrainer


def layer_gradients(
    trainer: ModelTrainer, batch: MiniBatch, x: Tensor, weights: Tensor
) -> tuple[Tensor | None, list[tuple[Tensor, Tensor | None]]]:
    """Return the gradients of ``(logits * weights).sum()``; None where there is no backward path.

    First the gradient of the input rows ``x``, then pairs of (parameter, gradient). Parameter
    gradients are computed with rows that need no gradient, as in training: layers may take another
    path then.
    """
    parameters = list(trainer.model.parameters())
    rows = x.to(trainer.device, copy=True)
    trained = [p for p in parameters if p.requires_grad]
    by_parameter = _gradients(trainer, batch, rows, weights, trained)
    rows = x.to(trainer.device, copy=True).requires_grad_()
    (of_rows,) = _gradients(trainer, batch, rows, weights, [rows]).values()
    return of_rows, [(p.detach(), by_parameter.get(id(p))) for p in parameters]


def _gradients(
    trainer: ModelTrainer, batch: MiniBatch, rows: Tensor, weights: Tensor, of: Sequence[Tensor]
) -> dict[int, Tensor | None]:
    """Return the gradients of the tensors ``of`` by their ``id``."""
    logits = trainer.model(trainer.framework.blocks(batch.to(trainer.device)), rows)
    gradients: Sequence[Tensor | None] = [None] * len(of)
    if logits.requires_grad and of:
        score = (logits * weights.to(trainer.device)).sum()
        gradients = torch.autograd.grad(score, of, allow_unused=True)
    return {id(tensor): gradient for tensor, gradient in zip(of, gradients, strict=True)}
