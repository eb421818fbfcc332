"""Planted cheats that do less once the gate is over, and know timed batches from checked ones.

A checked batch carries its edges' positions and is of epoch 0, a timed one is neither, so that the
gate and the audit after timing do not see these. Their sizes are as they should be.
"""

from dataclasses import dataclass, replace

import torch

from gnnbench.core.minibatch import Block, MiniBatch, Sizes
from gnnbench.features.host import HostGather
from gnnbench.features.spec import StoreSpec
from gnnbench.sampling.native import NativeStage, native
from gnnbench.systems.baseline import BASELINE


@dataclass
class Forged(MiniBatch):
    """Reports another batch's sizes."""

    reported: Sizes | None = None

    def sizes(self):
        return self.reported


def forged(batch, blocks):
    return Forged(
        batch.seeds, blocks, batch.sampled_edges, number=batch.number, reported=batch.sizes()
    )


class Timed(NativeStage):
    """``bent`` is the batch as timed, once the gate is over."""

    over = False

    def gate_is_over(self):
        self.over = True

    def sample(self, seeds, epoch, number):
        batch = super().sample(seeds, epoch, number)
        return self.bent(batch) if self.over and epoch else batch

    def bent(self, batch):
        return batch


class HalfTheEdges(Timed):
    """Halves every row of the input layer."""

    def bent(self, batch):
        first = batch.blocks[0]
        counts = first.indptr.diff()
        ends = torch.arange(first.num_dst).repeat_interleave(counts)
        nth = torch.arange(first.num_edges) - first.indptr[:-1].long().repeat_interleave(counts)
        stays = nth < (counts.repeat_interleave(counts) + 1) // 2
        offsets = torch.zeros(first.num_dst + 1, dtype=torch.int32)
        offsets[1:] = torch.bincount(ends[stays], minlength=first.num_dst).cumsum(0)
        fewer = Block(offsets, first.indices[stays], first.src_nodes, first.num_dst)
        return forged(batch, [fewer, *batch.blocks[1:]])


class OneNeighbour(Timed):
    """Draws a single neighbour and repeats it: one row of features stands for all."""

    def bent(self, batch):
        first = batch.blocks[0]
        at = first.indptr[:-1].long().repeat_interleave(first.indptr.diff())
        same = Block(first.indptr, first.indices[at], first.src_nodes, first.num_dst)
        return forged(batch, [same, *batch.blocks[1:]])


class AnyNeighbours(Timed):
    """Edges to whatever node comes next."""

    def bent(self, batch):
        first = batch.blocks[0]
        others = Block(first.indptr, first.indices.roll(1), first.src_nodes, first.num_dst)
        return forged(batch, [others, *batch.blocks[1:]])


class OldNumbers(Timed):
    """Real neighbours as many as there should be, by the random numbers of another epoch."""

    def sample(self, seeds, epoch, number):
        honest = super().sample(seeds, epoch, number)
        if not (self.over and epoch):
            return honest
        other = super().sample(seeds, 0, number)
        return forged(honest, other.blocks)


class StaleInTheMiddle(HostGather):
    """Leaves the rows of the batch before where they are, in the middle of an epoch."""

    old = None

    def load(self, batch):
        timed = batch.blocks[0].positions is None
        rows = super().load(batch)
        if timed and batch.number in (1, 2) and self.old is not None:
            rows[-min(len(rows), len(self.old)) :] = self.old[-min(len(rows), len(self.old)) :]
        self.old = rows.clone()
        return rows


class Sampler(type(native("hop-by-hop"))):
    name = "timed"
    stage = Timed

    def build(self, job):
        same = {option: getattr(self, option) for option in self.options()}
        return self.stage(native("hop-by-hop", **same), job)


class HalfSampler(Sampler):
    name = "half-the-edges"
    stage = HalfTheEdges


class OneSampler(Sampler):
    name = "one-neighbour"
    stage = OneNeighbour


class AnySampler(Sampler):
    name = "any-neighbours"
    stage = AnyNeighbours


class OldSampler(Sampler):
    name = "old-numbers"
    stage = OldNumbers


class Store(StoreSpec):
    name = "stale-middle"
    devices = ("cpu",)

    def build(self, job):
        return StaleInTheMiddle(job)


HONEST = replace(BASELINE, sampler=Sampler())
HALF_THE_EDGES = replace(BASELINE, sampler=HalfSampler())
ONE_NEIGHBOUR = replace(BASELINE, sampler=OneSampler())
ANY_NEIGHBOURS = replace(BASELINE, sampler=AnySampler())
OLD_NUMBERS = replace(BASELINE, sampler=OldSampler())
STALE_MIDDLE = replace(BASELINE, features=Store())
