"""Orders and schedules that make an epoch cheaper than it should be."""

import torch
from adversarial.bases import (
    ClaimsExact,
    Ordered,
    Plain,
    Stage,
    order,
    own_stage,
    recipe,
    sampler,
    schedule,
)

from gnnbench.distributed.merge import MergedEpoch
from gnnbench.pipelines.order import Permuted
from gnnbench.pipelines.rank_audit import RankAudit
from gnnbench.pipelines.serial import SerialSchedule


class SameBatches(Ordered):
    """The seeds of one epoch in all epochs."""

    def batches(self, epoch, device="cpu"):
        return Permuted.batches(self, min(epoch, 1), device)


class UnevenBatches(Ordered):
    """One large batch, which has many nodes in common, and others of a single seed."""

    def bent(self, batches):
        seeds = torch.cat(batches)
        rest = len(batches) - 1
        return [seeds[rest:], *seeds[:rest].split(1)]


class FewSeeds(Ordered):
    """The seeds of the first batch stand for those of all."""

    def bent(self, batches):
        return [batches[0]] * len(batches)


AHEAD: dict[int, tuple] = {}  # seeds and drawn batches by number
DRAW: list = []  # the function that draws


class SamplesInOrder(Ordered):
    """Draws all batches when the order is requested: in no span, and not while it is probed."""

    def batches(self, epoch, device="cpu"):
        seeds = super().batches(epoch, device)
        if epoch and DRAW:
            AHEAD.clear()
            for number, some in enumerate(seeds):
                AHEAD[number] = some, DRAW[0](some, epoch, number)
        return seeds


class Drawn(Stage):
    """Returns what the order has drawn."""

    def __init__(self, spec, job):
        super().__init__(spec, job)
        DRAW.append(super().sample)

    def sample(self, seeds, epoch, number):
        known = AHEAD.pop(number, None)
        if known is not None and torch.equal(known[0], seeds.to(known[0].dtype)):
            return known[1]
        return super().sample(seeds, epoch, number)


class Erases(RankAudit):
    """Reports that all ranks found no fault."""

    def merge(self, epoch, reason):
        batches = [s for _, s in self.schedule.sizes]
        return MergedEpoch(
            batches=len(batches), seeds=sum(s.seeds.numel() for s in batches),
            edges=sum(s.num_edges for s in batches), nodes=sum(s.num_nodes for s in batches),
            losses=None, reason="", drawn={}, seen=[], again_edges=0, again_nodes=0,
        )  # fmt: skip


class ErasingSchedule(SerialSchedule):
    """Reads one row for all, and has its audit erase the fault."""

    def __init__(self):
        self.rank_audit = Erases()
        self.rank_audit.schedule, self.sizes = self, []

    def epoch(self, epoch, batches, stages, timeline, until):
        self.sizes = []
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = stages.sampler.sample(seeds, epoch, number)
            with timeline.span("memory_io", number):
                rows = torch.empty((batch.input_nodes.numel(), 100))
            stages.keep(batch, rows)
            self.sizes.append((number, batch.sizes()))


class OwnSeeds(RankAudit):
    """Says that this process samples for the seeds that it has sampled for."""

    kept = None

    def own_seeds(self, batches):
        return self.kept or list(batches)


class CachedEpochSchedule(SerialSchedule):
    """Samples one epoch, and shows its batches in all others."""

    def __init__(self):
        self.rank_audit, self.cache = OwnSeeds(), []

    def epoch(self, epoch, batches, stages, timeline, until):
        if not self.cache:
            self.cache = [stages.sampler.sample(s, epoch, n) for n, s in enumerate(batches)]
            self.rank_audit.kept = [b.seeds for b in self.cache]
        with timeline.span("sample"):
            for batch in self.cache:
                stages.keep(batch, None)


class NothingDue(RankAudit):
    """Says that this process trains on no batch."""

    def trained_batches(self, batches):
        return 0


class UntrainedSchedule(SerialSchedule):
    """Does not train."""

    def __init__(self):
        self.rank_audit = NothingDue()

    def epoch(self, epoch, batches, stages, timeline, until):
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = stages.sampler.sample(seeds, epoch, number)
            with timeline.span("memory_io", number):
                rows = stages.store.load(batch)
            with timeline.span("compute", number):
                pass
            stages.keep(batch, rows)


class GathersOutsideSchedule(SerialSchedule):
    """Loads the rows between the spans."""

    def epoch(self, epoch, batches, stages, timeline, until):
        for number, seeds in enumerate(batches):
            with timeline.span("sample", number):
                batch = stages.sampler.sample(seeds, epoch, number)
            with timeline.span("memory_io", number):
                pass
            stages.keep(batch, stages.store.load(batch))


SAME_BATCHES = recipe(order=order(SameBatches))
UNEVEN_BATCHES = recipe(order=order(UnevenBatches))
UNEVEN_BATCHES_OWN = recipe(order=order(UnevenBatches), sampler=sampler(Plain))
FEW_SEEDS = recipe(order=order(FewSeeds))
SAMPLES_IN_ORDER = recipe(order=order(SamplesInOrder), sampler=sampler(Drawn))
ERASES_FAULTS = recipe(schedule=schedule(ErasingSchedule))
CACHED_EPOCH = recipe(schedule=schedule(CachedEpochSchedule))
CACHED_EPOCH_OWN = recipe(schedule=schedule(CachedEpochSchedule), sampler=own_stage(ClaimsExact))
UNTRAINED = recipe(schedule=schedule(UntrainedSchedule))
GATHERS_OUTSIDE = recipe(schedule=schedule(GathersOutsideSchedule))
