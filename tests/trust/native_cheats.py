"""Planted cheats on the real baseline and a small graph: its stages bent.

Bent stages in a recipe are under the suite's own audit. Where that one is to be blind, so that the
runner must find out by itself, it is a system with an epoch loop of its own: ``SystemRunner``,
derived.
"""

from dataclasses import replace

import torch

from gnnbench.features.host import HostGather
from gnnbench.features.spec import StoreSpec
from gnnbench.pipelines.order import OrderSpec, Permuted
from gnnbench.pipelines.serial import Serial, SerialSchedule
from gnnbench.sampling.native import NativeStage, native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.validation.gate import GATE_BATCHES

# Stages that know when the gate is over, and what they do from then on.


class Timed(NativeStage):
    timed = False

    def gate_is_over(self):
        self.timed = True


class FewerSeeds(Timed):
    """All batches, each with some of its seeds."""

    def sample(self, seeds, epoch, number):
        return super().sample(seeds[: seeds.numel() - 7] if self.timed else seeds, epoch, number)


class SmallerFanouts(Timed):
    """Smaller fanouts once it is timed."""

    def sample(self, seeds, epoch, number):
        if self.timed:
            fewer = tuple(max(f - 1, 1) for f in self.job.cell.fanouts)
            self.sampler.setting = replace(self.sampler.setting, fanouts=fewer)
        return super().sample(seeds, epoch, number)


class CachedDraws(Timed):
    """A batch number is answered from a cache, whatever its seeds are."""

    def __init__(self, spec, job):
        super().__init__(spec, job)
        self.cache = {}

    def sample(self, seeds, epoch, number):
        if number not in self.cache:
            self.cache[number] = super().sample(seeds, epoch, number)
        return self.cache[number]

    def checked(self, seeds, number):
        known = self.cache.get(number) if self.timed else None
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


class HalfTheSeeds(Permuted):
    """An epoch of half the batches."""

    def batches(self, epoch, device="cpu"):
        whole = super().batches(epoch, device)
        return whole[: len(whole) // 2]


class FirstBatchAgain(Permuted):
    """The same seeds batch after batch: warm in every cache."""

    def batches(self, epoch, device="cpu"):
        return [super().batches(epoch, device)[0]] * 4


class AnyNodes(Permuted):
    """Seeds that are none of the training set: the first nodes, whose degrees may suit."""

    def batches(self, epoch, device="cpu"):
        whole = super().batches(epoch, device)
        return list(torch.arange(sum(map(len, whole)), device=device).split(len(whole[0])))


# The same as recipes name them.


class Sampler(type(native("hop-by-hop"))):
    name = "honest"
    stage = Timed

    def build(self, job):
        same = {option: getattr(self, option) for option in self.options()}
        return self.stage(native("hop-by-hop", **same), job)


class FewerSeedsSampler(Sampler):
    name = "fewer-seeds"
    stage = FewerSeeds


class SmallerFanoutsSampler(Sampler):
    name = "smaller-fanouts"
    stage = SmallerFanouts


class CachedSampler(Sampler):
    name = "cached"
    stage = CachedDraws


class Store(StoreSpec):
    name = "honest"
    devices = ("cpu",)
    store = GatedOnce

    def build(self, job):
        return self.store(job)


class RolledStore(Store):
    name = "rolled"
    store = RolledRows


class StaleStore(Store):
    name = "stale"
    store = StaleRows


class FewStaleStore(Store):
    name = "few-stale"
    store = FewStaleRows


class RoundedStore(Store):
    name = "rounded"
    store = RoundedRows


class Order(OrderSpec):
    name = "honest"
    order = Permuted

    def build(self, job):
        cell = job.cell
        return self.order(job.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)


class HalfOrder(Order):
    name = "half"
    order = HalfTheSeeds


class RepeatedOrder(Order):
    name = "repeated"
    order = FirstBatchAgain


class AnyOrder(Order):
    name = "any-nodes"
    order = AnyNodes


class Schedule(Serial):
    name = "honest"
    schedule = SerialSchedule

    def build(self, job):
        return self.schedule()


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


class HalfSchedule(Schedule):
    name = "half"
    schedule = EndsHalfWay


class RepeatedSchedule(Schedule):
    name = "repeated"
    schedule = RunsOneBatchAgain


class LazySchedule(Schedule):
    name = "lazy"
    schedule = TrainsOnce


HONEST_TIMED = replace(
    BASELINE, sampler=Sampler(), features=Store(), order=Order(), schedule=Schedule()
)
STALE_SEEN = replace(BASELINE, features=RolledStore())
WRONG_FEATURES = replace(BASELINE, features=RoundedStore())
LESS_EDGES = replace(BASELINE, sampler=SmallerFanoutsSampler())
LESS_SEEDS_SEEN = replace(BASELINE, sampler=FewerSeedsSampler())
LESS_BATCHES = replace(BASELINE, order=HalfOrder())
SAME_SEEDS = replace(BASELINE, order=RepeatedOrder())
ANY_SEEDS = replace(BASELINE, order=AnyOrder())
HALF_EPOCH = replace(BASELINE, schedule=HalfSchedule())
SAME_BATCH = replace(BASELINE, schedule=RepeatedSchedule())
LITTLE_TRAINED = replace(BASELINE, schedule=LazySchedule())


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
    made_of = replace(BASELINE, features=StaleStore())


class StaleFew(HonestBlind):
    made_of = replace(BASELINE, features=FewStaleStore())


class CachedBatches(HonestBlind):
    made_of = replace(BASELINE, sampler=CachedSampler())


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
