"""Planted cheats on the real baseline and a small graph: its sampler, features and epochs bent."""

from dataclasses import replace

import torch

from gnnbench.stages.order import AsDrawn
from gnnbench.systems.baseline import Baseline


class Timed(Baseline):
    """Knows whether the gate is over."""

    timed = False

    def check(self):
        report = super().check()
        self.timed = True
        return report


class HonestTimed(Timed):
    name = "honest-timed"


class Blind(Timed):
    """Does not look again at its timed batches: the runner must find out by itself."""

    def _recount(self, epoch, batches):
        return ""

    def _reread(self):
        return ""

    def _untrained(self, before, losses):
        return ""


class HonestBlind(Blind):
    name = "honest-blind"


class StaleSeen(Timed):
    """Serves rows of an earlier batch, and looks again."""

    def load(self, drawn):
        return super().load(drawn).roll(1, 0) if self.timed else super().load(drawn)


class StaleFeatures(Blind):
    """Once timed, it serves the rows of an earlier batch."""

    old = None

    def load(self, drawn):
        rows = super().load(drawn)
        if not self.timed:
            return rows
        if self.old is None or self.old.shape[0] < rows.shape[0]:
            self.old = rows.clone()
        return self.old[: rows.shape[0]]


class StaleFew(StaleFeatures):
    """Only a few rows are those of the batch before."""

    def load(self, drawn):
        rows = Baseline.load(self, drawn)
        if self.timed:
            if self.old is not None:
                rows[:3] = self.old
            self.old = rows[-3:].clone()
        return rows


class CachedBatches(Blind):
    """A batch number is answered from a cache, whatever its seeds are."""

    def setup(self):
        super().setup()
        self.cache = {}

    def sample(self, seeds, epoch, batch):
        if batch not in self.cache:
            self.cache[batch] = super().sample(seeds, epoch, batch)
        return self.cache[batch]

    def gate_sample(self, seeds, batch):
        if not self.timed or batch not in self.cache:
            return super().gate_sample(seeds, batch)
        drawn = super().gate_sample(self.cache[batch].seeds, batch)
        return drawn


class LessBatches(Blind):
    """An epoch of half the batches."""

    def run_epoch(self, epoch):
        cell = self.cell
        self.order = AsDrawn(
            self.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches // 2
        )
        return super().run_epoch(epoch)


class LessSeeds(Blind):
    """All batches, each with some of its seeds."""

    def sample(self, seeds, epoch, batch):
        return super().sample(seeds[: seeds.numel() - 7] if self.timed else seeds, epoch, batch)


class LessEdges(Timed):
    """Smaller fanouts once it is timed."""

    def sample(self, seeds, epoch, batch):
        if self.timed:
            fewer = tuple(max(f - 1, 1) for f in self.cell.fanouts)
            self.sampler.setting = replace(self.sampler.setting, fanouts=fewer)
        return super().sample(seeds, epoch, batch)


class WrongFeatures(Baseline):
    """Features off by a rounding."""

    def load(self, drawn):
        return torch.nextafter(super().load(drawn), torch.tensor(torch.inf))


class Untrained(Blind):
    """Forward only: the loss is the first batch's, the weights never move."""

    def _train(self, inputs):
        if not hasattr(self, "loss"):
            self.loss = super()._train(inputs)
        return self.loss
