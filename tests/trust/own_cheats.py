"""Samplers with random numbers of their own, in plain torch: honest ones, and planted cheats."""

from dataclasses import replace

import torch

import gnnbench
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE


class Honest(gnnbench.Sampler):
    """Sorts a random number for each edge of a row and takes the first."""

    name = "own-honest"
    summary = "plain torch"
    devices = ("cpu",)
    law = "without-replacement"

    def draw(self, seeds, *, key, batch, with_positions):
        self.random = self.generator(key, batch)
        building = gnnbench.BlockBuilder(seeds, self.frontier)
        for fanout in self.fanouts:
            dst = building.destinations.long()
            begin = self._indptr[dst]
            counts, at = self.picked(self._indptr[dst + 1] - begin, begin, fanout)
            building.add(counts, self.neighbours(at))
        return building.batch()

    def generator(self, key, batch):
        return torch.Generator().manual_seed(key + batch)

    def picked(self, degree, begin, fanout):
        """Numbers of picks ``[n]`` and places in ``indices`` ``[e]`` of rows that begin there."""
        owner = torch.arange(degree.numel()).repeat_interleave(degree)
        nth = torch.arange(owner.numel()) - (degree.cumsum(0) - degree)[owner]
        order = self.keys(begin[owner] + nth, nth, degree[owner], owner).argsort()
        order = order[owner[order].argsort(stable=True)]
        counts = degree.clamp(max=fanout)
        at = (begin[owner] + nth)[order]
        return counts, at[nth < counts[owner]]

    def keys(self, at, nth, degree, owner):
        """A number for each edge; the smallest of a row are taken."""
        return torch.rand(at.numel(), generator=self.random, dtype=torch.float64)

    def neighbours(self, at):
        return self._indices[at]


class OneGenerator(Honest):
    """Goes on with one generator for ever: no batch is ever drawn again."""

    name = "own-one-generator"
    kept = None

    def generator(self, key, batch):
        self.kept = self.kept or torch.Generator().manual_seed(self.setting.seed)
        return self.kept


class Independent(Honest):
    """With replacement."""

    name = "own-independent"
    law = "with-replacement"

    def picked(self, degree, begin, fanout):
        counts = (degree > 0) * fanout
        owner = torch.arange(degree.numel()).repeat_interleave(counts)
        part = torch.rand(owner.numel(), generator=self.random, dtype=torch.float64)
        return counts, begin[owner] + (part * degree[owner]).long()


class ByWeight(Honest):
    """With replacement, in proportion to the edges' weights: by inversion of their sums."""

    name = "own-by-weight"
    law = "weighted"

    def picked(self, degree, begin, fanout):
        sums = torch.cat([torch.zeros(1).double(), self.weights().double().cumsum(0)])
        low, high = sums[begin], sums[begin + degree]
        counts = (high > low) * fanout
        owner = torch.arange(degree.numel()).repeat_interleave(counts)
        part = torch.rand(owner.numel(), generator=self.random, dtype=torch.float64)
        at = torch.searchsorted(sums, low[owner] + part * (high - low)[owner], right=True) - 1
        return counts, at

    def weights(self):
        return self._weights


class WrongWeights(ByWeight):
    """By the roots of the weights."""

    name = "own-wrong-weights"

    def weights(self):
        return self._weights.sqrt()


class FirstOnes(Honest):
    """Takes the first neighbours of each row."""

    name = "own-first"

    def keys(self, at, nth, degree, owner):
        return nth.double()


class LeansToTheFront(Honest):
    """Neighbours in the first half of a row have 1.2 times the weight of the others."""

    name = "own-leaning"

    def keys(self, at, nth, degree, owner):
        return super().keys(at, nth, degree, owner) / (1 + 0.2 * (2 * nth < degree))


class LikesHubs(Honest):
    """Neighbours of high degree are likelier: their features are in a cache."""

    name = "own-hubs"

    def keys(self, at, nth, degree, owner):
        known = self._indptr.diff()[self._indices[at].long()]
        return super().keys(at, nth, degree, owner) / (1 + known.double())


class LowIds(Honest):
    """Neighbours of low ids are likelier."""

    name = "own-low-ids"

    def keys(self, at, nth, degree, owner):
        low = self._indices[at] < self.num_nodes // 4
        return super().keys(at, nth, degree, owner) / (1 + 2 * low)


class Window(Honest):
    """Neighbours that are next to each other, from a random place on: each as likely as any."""

    name = "own-window"

    def picked(self, degree, begin, fanout):
        counts = self.counts(degree, fanout)
        owner = torch.arange(degree.numel()).repeat_interleave(counts)
        nth = torch.arange(owner.numel()) - (counts.cumsum(0) - counts)[owner]
        shift = (torch.rand(degree.numel(), generator=self.random) * degree).long()
        return counts, begin[owner] + (shift[owner] + nth) % degree[owner]

    def counts(self, degree, fanout):
        return degree.clamp(max=fanout)


class Distinct(Window):
    """Says that its picks are independent and avoids repeating one."""

    name = "own-distinct"
    law = "with-replacement"

    def counts(self, degree, fanout):
        return (degree > 0) * fanout


class OneNumber(Honest):
    """One random number for all rows of a hop."""

    name = "own-one-number"

    def keys(self, at, nth, degree, owner):
        return (nth / degree + torch.rand(1, generator=self.random)) % 1


class SameEveryEpoch(Honest):
    """The epoch's number is left out."""

    name = "own-same-epochs"

    def generator(self, key, batch):
        return torch.Generator().manual_seed(batch)


class SameOfNode(Honest):
    """The neighbours of a node are drawn once and for all."""

    name = "own-same-nodes"

    def keys(self, at, nth, degree, owner):
        return torch.rand(self.num_edges, generator=torch.Generator().manual_seed(1))[at]


class TooFew(Honest):
    """One neighbour less than the fanout."""

    name = "own-too-few"

    def picked(self, degree, begin, fanout):
        return super().picked(degree, begin, max(fanout - 1, 1))


class Repeated(Honest):
    """The first pick of a hop stands for its row's others."""

    name = "own-repeated"

    def picked(self, degree, begin, fanout):
        counts, at = super().picked(degree, begin, fanout)
        return counts, at[counts.cumsum(0) - counts].repeat_interleave(counts) if at.numel() else at


class Invented(Honest):
    """Any node is a neighbour."""

    name = "own-invented"

    def neighbours(self, at):
        nodes = torch.randint(self.num_nodes, at.shape, generator=self.random)
        return nodes.to(self._indices.dtype)


class BehavesAtFirst(Honest):
    """Leans once it has been looked at: when the gate's batches have been drawn."""

    name = "own-behaves"
    calls = 0

    def draw(self, seeds, **others):
        self.calls += 1
        return super().draw(seeds, **others)

    def keys(self, at, nth, degree, owner):
        fair = super().keys(at, nth, degree, owner)
        return fair if self.calls <= 16 else fair / (1 + 2.0 * (2 * nth < degree))


class Tuple_(Honest):
    """Returns what is no mini-batch."""

    name = "own-tuple"

    def draw(self, seeds, **others):
        return (seeds, [])


def recipe(sampler):
    return replace(BASELINE, name=sampler.name, sampler=native(sampler))


CLASSES = [
    Honest, OneGenerator, Independent, ByWeight, WrongWeights, Distinct, FirstOnes, LeansToTheFront,
    LikesHubs, LowIds, Window, OneNumber, SameEveryEpoch, SameOfNode, TooFew, Repeated, Invented,
    BehavesAtFirst, Tuple_,
]  # fmt: skip
BY_NAME = {cls.name: cls for cls in CLASSES}
HONEST = recipe(Honest)
ONE_GENERATOR = recipe(OneGenerator)
FIRST = recipe(FirstOnes)
SAME_EPOCHS = recipe(SameEveryEpoch)
INVENTED = recipe(Invented)
BEHAVES = recipe(BehavesAtFirst)
