"""Planted cheats on the real baseline and a small graph: its stages bent.

Bent stages in a recipe are under the suite's own audit. Where that one is to be blind, so that the
runner must find out by itself, it is a system with an epoch loop of its own: ``SystemRunner``,
derived.
"""

from dataclasses import replace

import torch
from adversarial.bases import Ordered, Stage, order, recipe, sampler, schedule, store

from gnnbench.features.host import HostGather
from gnnbench.pipelines.serial import SerialSchedule
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.validation.gate import GATE_BATCHES

# Stages that know when the gate is over, and what they do from then on.


class FewerSeeds(Stage):
    """All batches, each with some of its seeds."""

    def sample(self, seeds, epoch, number):
        return super().sample(seeds[: seeds.numel() - 7] if self.over else seeds, epoch, number)


class SmallerFanouts(Stage):
    """Smaller fanouts once it is timed."""

    def sample(self, seeds, epoch, number):
        if self.over:
            fewer = tuple(max(f - 1, 1) for f in self.job.cell.fanouts)
            self.sampler.setting = replace(self.sampler.setting, fanouts=fewer)
        return super().sample(seeds, epoch, number)


class CachedDraws(Stage):
    """A batch number is answered from a cache, whatever its seeds are."""

    def __init__(self, spec, job):
        super().__init__(spec, job)
        self.cache = {}

    def sample(self, seeds, epoch, number):
        if number not in self.cache:
            self.cache[number] = super().sample(seeds, epoch, number)
        return self.cache[number]

    def checked(self, seeds, number):
        known = self.cache.get(number) if self.over else None
        return super().checked(seeds if known is None else known.seeds, number)


class GatedOnce(HostGather):
    """Knows that the first rows are for the gate, and the next for the look at its first seeds."""

    def __init__(self, job):
        super().__init__(job)
        self.calls = 0

    def load(self, batch):
        self.calls += 1
        rows = super().load(batch)
        return rows if self.calls <= GATE_BATCHES + 1 else self.bent(rows)

    def bent(self, rows):
        return rows


class RolledRows(GatedOnce):
    """Each node is served its neighbour's row."""

    def bent(self, rows):
        return rows.roll(1, 0)


class StaleRows(GatedOnce):
    """Serves the rows of its first batch, as far as they go."""

    old = None

    def bent(self, rows):
        if self.old is None:
            self.old = rows.clone()
        stale = self.old[: rows.shape[0]]
        rows[: stale.shape[0]] = stale
        return rows


class FewStaleRows(GatedOnce):
    """Only a few rows are those of the batch before."""

    old = None

    def bent(self, rows):
        if self.old is not None:
            rows[:3] = self.old
        self.old = rows[-3:].clone()
        return rows


class RoundedRows(HostGather):
    """Features off by a rounding."""

    def load(self, batch):
        return torch.nextafter(super().load(batch), torch.tensor(torch.inf))


class HalfTheSeeds(Ordered):
    """An epoch of half the batches."""

    def batches(self, epoch, device="cpu"):
        whole = super().batches(epoch, device)
        return whole[: len(whole) // 2]


class FirstBatchAgain(Ordered):
    """The same seeds batch after batch: warm in every cache."""

    def batches(self, epoch, device="cpu"):
        return [super().batches(epoch, device)[0]] * 4


class AnyNodes(Ordered):
    """Seeds that are none of the training set: the first nodes, whose degrees may suit."""

    def batches(self, epoch, device="cpu"):
        whole = super().batches(epoch, device)
        return list(torch.arange(sum(map(len, whole)), device=device).split(len(whole[0])))


class EndsHalfWay(SerialSchedule):
    def epoch(self, epoch, batches, stages, timeline, until):
        super().epoch(epoch, batches[: len(batches) // 2], stages, timeline, until)


class RunsOneBatchAgain(SerialSchedule):
    """Runs one batch as often as there are any."""

    def epoch(self, epoch, batches, stages, timeline, until):
        super().epoch(epoch, batches[:1] * len(batches), stages, timeline, until)


class Lazy:
    """Trains on the first of an epoch's batches."""

    def __init__(self, trainer):
        self.trainer = trainer

    def step(self, batch, rows):
        if not self.trainer.losses:
            self.trainer.step(batch, rows)


class TrainsOnce(SerialSchedule):
    def epoch(self, epoch, batches, stages, timeline, until):
        lazy = replace(stages, trainer=Lazy(stages.trainer))
        super().epoch(epoch, batches, lazy, timeline, until)


HONEST_TIMED = recipe(
    sampler=sampler(Stage), features=store(GatedOnce), order=order(Ordered),
    schedule=schedule(SerialSchedule),
)  # fmt: skip
STALE_SEEN = recipe(features=store(RolledRows))
WRONG_FEATURES = recipe(features=store(RoundedRows))
LESS_EDGES = recipe(sampler=sampler(SmallerFanouts))
LESS_SEEDS_SEEN = recipe(sampler=sampler(FewerSeeds))
LESS_BATCHES = recipe(order=order(HalfTheSeeds))
SAME_SEEDS = recipe(order=order(FirstBatchAgain))
ANY_SEEDS = recipe(order=order(AnyNodes))
HALF_EPOCH = recipe(schedule=schedule(EndsHalfWay))
SAME_BATCH = recipe(schedule=schedule(RunsOneBatchAgain))
LITTLE_TRAINED = recipe(schedule=schedule(TrainsOnce))


class HonestBlind(SystemRunner):
    """Does not look again at its timed batches."""

    name = "blind"
    summary = "a composition of one's own"
    devices = ("cpu",)
    made_of = BASELINE

    def __init__(self, cell, graph):
        super().__init__(cell, graph, self.made_of.resolved(cell.device, cell.goes_until))

    def _audit_epoch(self, epoch):
        return replace(super()._audit_epoch(epoch), ok=True, reason="")


class StaleFeatures(HonestBlind):
    made_of = recipe(features=store(StaleRows))


class StaleFew(HonestBlind):
    made_of = recipe(features=store(FewStaleRows))


class CachedBatches(HonestBlind):
    made_of = recipe(sampler=sampler(CachedDraws))


class LessSeeds(HonestBlind):
    made_of = LESS_SEEDS_SEEN


class HalfEpoch(HonestBlind):
    made_of = HALF_EPOCH


class Untrained(HonestBlind):
    """Trains on one batch; from then on the loss is that one's, and the weights never move."""

    def setup(self):
        super().setup()
        self.stages.trainer = Frozen(self.trainer)


class Frozen:
    loss = None

    def __init__(self, trainer):
        self.trainer = trainer

    def step(self, batch, rows):
        if self.loss is None:
            self.trainer.step(batch, rows)
            (self.loss,) = self.trainer.losses
        else:
            self.trainer.losses.append(self.loss)
