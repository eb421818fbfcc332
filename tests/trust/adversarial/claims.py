"""Samplers that say something false about themselves, or something else after the gate."""

from dataclasses import replace

import torch
from adversarial.bases import ClaimsExact, Plain, own_stage, ragged, recipe, sampler

from gnnbench.core import registry
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.sampling.stated_law import StatedLawStage
from gnnbench.validation.law import WALK, Law


def mixed(ids, key):
    """Numbers that look random, the same of equal ids and keys."""
    return (ids * 0x9E3779B1 + key * 0x85EBCA77) >> 11


class ClaimsOurs(StatedLawStage):
    """Enters its name among gnnbench's own samplers, whose picks are not tested."""

    def __init__(self, spec, job, library):
        super().__init__(spec, job, library)
        registry.OURS[registry.SAMPLER].setdefault(spec.name, "")


class ForeignLaw(StatedLawStage):
    """States the law of walks, whose edges are not looked up."""

    @property
    def law(self):
        return Law(WALK, self.job.graph.indptr.diff(), visits=1 << 20)


class AfterTheGate(StatedLawStage):
    """Draws by itself once the gate has passed."""

    over = False

    def gate_is_over(self):
        super().gate_is_over()
        self.over = True

    def sample(self, seeds, epoch, number):
        drawn = super().sample if not (self.over and epoch) else self.drawn
        return drawn(seeds, epoch, number)


class ChangesItsLaw(AfterTheGate):
    """States the law of walks once the gate has passed; edges lead to any nodes."""

    def gate_is_over(self):
        super().gate_is_over()
        self.__dict__["law"] = Law(WALK, self.job.graph.indptr.diff(), visits=1 << 20)

    def checked(self, seeds, number):
        batch = super().checked(seeds, number)
        self.growth = [b.num_src / b.num_dst for b in reversed(batch.blocks)]
        return batch

    def drawn(self, seeds, epoch, number):
        nodes, blocks = seeds.to(self.job.graph.indices.dtype), []
        degree = self.job.graph.indptr.diff()
        for fanout, growth in zip(self.job.cell.fanouts, self.growth, strict=True):
            counts = degree[nodes.long()].clamp(max=fanout)
            unknown = torch.ones(degree.numel(), dtype=torch.bool)
            unknown[nodes.long()] = False
            more = int(nodes.numel() * growth) - nodes.numel()
            grown = torch.cat([nodes, unknown.nonzero()[:more, 0].to(nodes.dtype)])
            offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).int()
            edges = torch.arange(int(offsets[-1]), dtype=torch.int32) % grown.numel()
            blocks.insert(0, Block(offsets, edges, grown, nodes.numel()))
            nodes = grown
        return MiniBatch(seeds, blocks, sum(b.num_edges for b in blocks), number=number)


class ChangesItsFrontier(AfterTheGate):
    """Expands new nodes alone once the gate has passed."""

    def gate_is_over(self):
        super().gate_is_over()
        self.frontier = "new"
        self.sampler.setting = replace(self.sampler.setting, frontier="new")

    def drawn(self, seeds, epoch, number):
        return super(AfterTheGate, self).sample(seeds, epoch, number)


class ShuffledWindow(Plain):
    """Takes neighbours that follow each other in rows that were shuffled once.

    One random number for each row; the same neighbours are together in every epoch.
    """

    shuffled = None

    def picked(self, degree, begin, fanout):
        if self.shuffled is None:
            owner, _ = ragged(self._indptr.diff())
            order = torch.rand(owner.numel(), generator=self.random).argsort()
            self.shuffled = order[owner[order].argsort(stable=True)]
        counts = degree.clamp(max=fanout)
        owner, nth = ragged(counts)
        start = self.starts(begin, degree, fanout)
        return counts, self.shuffled[begin[owner] + (start[owner] + nth) % degree[owner]]

    def starts(self, begin, degree, fanout):
        return (torch.rand(degree.numel(), generator=self.random) * degree).long()


class FixedPicks(ShuffledWindow):
    """Takes the same neighbours of a node in every epoch."""

    def starts(self, begin, degree, fanout):
        return mixed(begin, fanout) % degree.clamp(min=1)


class Pool(ShuffledWindow):
    """Has four sets of neighbours for each node, one of them for an epoch."""

    def starts(self, begin, degree, fanout):
        return mixed(begin, fanout + 8 * (self.random.initial_seed() % 4)) % degree.clamp(min=1)


FIXED_PICKS = recipe(sampler=sampler(FixedPicks))
CLAIMS_EXACT = recipe(sampler=own_stage(ClaimsExact, FixedPicks))
CLAIMS_OURS = recipe(sampler=own_stage(ClaimsOurs, FixedPicks))
FOREIGN_LAW = recipe(sampler=own_stage(ForeignLaw, FixedPicks))
CHANGES_ITS_LAW = recipe(sampler=own_stage(ChangesItsLaw))
CHANGES_ITS_FRONTIER = recipe(sampler=own_stage(ChangesItsFrontier))
SHUFFLED_WINDOW = recipe(sampler=sampler(ShuffledWindow))
POOL = recipe(sampler=sampler(Pool))
