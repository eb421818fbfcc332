"""Planted cheats that draw and load what they should, and train on less of it."""

from dataclasses import replace

import torch
from adversarial.bases import recipe, schedule

from gnnbench.kernels.aggregate import aggregate
from gnnbench.models.aggregation import Csr
from gnnbench.models.native import Native
from gnnbench.pipelines.serial import SerialSchedule


class Around:
    """A trainer around the one that is there."""

    def __init__(self, trainer, epoch):
        self.trainer, self.epoch = trainer, epoch

    def forward_only(self, batch, rows):
        """The loss without gradients and without a step."""
        trainer = self.trainer
        with torch.no_grad():
            logits = trainer.model(trainer.framework.blocks(batch), rows)
            labels = trainer._labels[batch.seeds.long()]
            trainer.losses.append(
                torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1)
            )


class HalfOfTheBatches(Around):
    """Trains on every second batch, and has a loss of all."""

    def step(self, batch, rows):
        one = self.forward_only if batch.number % 2 else self.trainer.step
        one(batch, rows)


class NowAndThen(Around):
    """In every second epoch the optimizer steps once, so that something has moved."""

    def step(self, batch, rows):
        one = self.forward_only if self.epoch % 2 and batch.number else self.trainer.step
        one(batch, rows)


class Plain(Around):
    def step(self, batch, rows):
        self.trainer.step(batch, rows)


class AroundSchedule(SerialSchedule):
    around = Plain

    def epoch(self, epoch, batches, stages, timeline, until):
        trainer = stages.trainer
        trainer.epochs = getattr(trainer, "epochs", -1) + 1  # numbers are drawn at random
        mine = replace(stages, trainer=self.around(trainer, trainer.epochs))
        super().epoch(epoch, batches, mine, timeline, until)


class HalfSchedule(AroundSchedule):
    around = HalfOfTheBatches


class NowAndThenSchedule(AroundSchedule):
    around = NowAndThen


class DetachedLayer(torch.nn.Module):
    """Has gradients at the gate, whose rows want some, and none in training."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, block, x):
        with torch.set_grad_enabled(x.requires_grad and torch.is_grad_enabled()):
            return self.layer(block, x)


class DetachingFramework(Native):
    """Leaves the first layer as it was drawn."""

    made = 0

    def layer(self, kind, weights):
        self.made += 1
        layer = super().layer(kind, weights)
        return DetachedLayer(layer) if self.made == 1 else layer


class Detaching(Csr):
    name = "detaching"

    def build(self):
        super().build()
        return DetachingFramework(aggregate)


HONEST = recipe(schedule=schedule(AroundSchedule))
HALF_TRAINED = recipe(schedule=schedule(HalfSchedule))
NOW_AND_THEN = recipe(schedule=schedule(NowAndThenSchedule))
DETACHED = recipe(aggregate=Detaching())
