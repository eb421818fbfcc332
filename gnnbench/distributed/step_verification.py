"""Verifies the updates of several ranks: one process takes the same steps from the same weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch
from gnnbench.distributed.rank_trainer import RankTrainer, rank_trainer
from gnnbench.distributed.tasks import TrainingStep
from gnnbench.pipelines.schedule import Stages

# Allowed deviation of one process that takes the same steps, by device: of each batch's loss, and
# of the weights, relative to the distance that they move in an epoch. Sums have another order: on a
# CPU 16 steps deviate by 1e-7 and 1e-6, 308 steps by nothing. On a GPU atomics add to it, and Adam
# amplifies gradients near 0. Leaving out the gradients of one trainer exceeds the bounds.
LOSS = {"cpu": 1e-4, "cuda": 1e-3}
WEIGHTS = {"cpu": 0.01, "cuda": 0.25}
ROUNDINGS, ROUNDED = 3, 4.0  # further trainings from rounded weights; factor on their deviation
DRAWN = 0.03  # allowed deviation of an epoch's mean loss where a sampler draws other edges again

LossesAndWeights = tuple[dict[int, float], Tensor]  # losses by batch


def flat_weights(trainer: RankTrainer) -> Tensor:
    """Return a copy of all weights of a trainer's model, concatenated."""
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


@dataclass
class StepVerification:
    """A verification epoch: its batches, the training state before it, and the weights after."""

    batches: list[Tensor]
    stages: Stages
    before: list[Tensor]
    after: Tensor

    def fault(self, epoch: int, steps: Sequence[TrainingStep], rank_losses: Sequence[float]) -> str:
        """Compare the ranks' losses and weights with those of one process; returns the fault or "".

        After a deviation, the process takes the steps again from weights that differ by rounding.
        A deviation that rounding alone causes is no fault. A sampler that draws other edges each
        time deviates by more than rounding: then the mean loss of all batches is compared.
        """
        losses, weights = self._train(epoch, steps)
        if sorted(losses) != list(range(len(rank_losses))):
            return f"took steps of {len(losses)} batches, and reports losses of {len(rank_losses)}"
        if self.stages.sampler.exact and not self._difference(losses, weights, rank_losses, []):
            return ""
        others = [self._train(epoch, steps, seed) for seed in range(1, ROUNDINGS + 1)]
        return self._difference(losses, weights, rank_losses, others)

    def _train(
        self, epoch: int, steps: Sequence[TrainingStep], jitter: int = 0
    ) -> LossesAndWeights:
        """Take the steps in this process; ``jitter`` is the seed of the rounding, 0: none."""
        trainer = rank_trainer(self.stages)
        assert trainer is not None and self.stages.store is not None
        trainer.restore(self.before)
        self._first_weights = flat_weights(trainer)
        if jitter:
            trainer.jitter(jitter)
        losses: dict[int, float] = {}
        self.stages.store.forget()
        for step in steps:
            step_losses = trainer.learn_in_one(self._load(epoch, step))
            losses |= dict(zip(step.batches, step_losses, strict=True))
        return losses, flat_weights(trainer)

    def _difference(
        self,
        losses: dict[int, float],
        weights: Tensor,
        rank_losses: Sequence[float],
        others: Sequence[LossesAndWeights],
    ) -> str:
        """Return the first difference beyond the bounds that ``others`` do not explain."""
        if self.stages.sampler.exact:
            fault = self._loss_difference(losses, rank_losses, others)
        else:
            fault = _mean_difference(losses, rank_losses, others)
        return fault or self._weight_difference(weights, others)

    def _loss_difference(
        self,
        losses: dict[int, float],
        rank_losses: Sequence[float],
        others: Sequence[LossesAndWeights],
    ) -> str:
        device = self.stages.sampler.job.device.type
        for number, loss in enumerate(rank_losses):
            right = losses[number]
            allowed = max(
                LOSS[device] * abs(right),
                *(ROUNDED * abs(other[number] - right) for other, _ in others),
                0.0,
            )
            if abs(loss - right) > allowed or math.isnan(loss) != math.isnan(right):
                return (
                    f"batch {number + 1} has a loss of {loss:.5g} where one process that takes the"
                    f" same steps has {right:.5g}"
                )
        return ""

    def _weight_difference(self, weights: Tensor, others: Sequence[LossesAndWeights]) -> str:
        device = self.stages.sampler.job.device.type
        distance = (self.after - self._first_weights).norm()
        share = float((weights - self.after).norm() / distance)
        rounded = [float((weights - other).norm() / distance) for _, other in others]
        if not share <= max(WEIGHTS[device], *(ROUNDED * one for one in rounded), 0.0):
            return (
                f"led the weights {share:.1%} of their way off where one process that takes its"
                " steps leads them"
            )
        return ""

    def _load(self, epoch: int, step: TrainingStep) -> Iterator[tuple[Batch, Tensor]]:
        assert self.stages.store is not None
        for number in step.batches:
            batch = self.stages.sampler.sample(self.batches[number], epoch, number)
            yield batch, self.stages.store.load(batch)


def _mean_difference(
    losses: dict[int, float],
    rank_losses: Sequence[float],
    others: Sequence[LossesAndWeights],
) -> str:
    """Compare the mean losses of epochs whose edges differ by random draws."""
    right, loss = _mean(losses.values()), _mean(rank_losses)
    spread = max((abs(_mean(other.values()) - right) for other, _ in others), default=0.0)
    if abs(loss - right) <= max(DRAWN * abs(right), ROUNDED * spread):
        return ""
    return (
        f"has a mean loss of {loss:.5g} where one process that takes the same steps has {right:.5g}"
    )


def _mean(losses: Iterable[float]) -> float:
    """Return the mean loss of the batches that have a labelled seed; 0 if none has."""
    known = [loss for loss in losses if not math.isnan(loss)]
    return sum(known) / len(known) if known else 0.0
