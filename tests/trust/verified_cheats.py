"""Planted cheats that do less once the gate is over, and know timed batches from checked ones.

A checked batch carries its edges' positions and is of epoch 0, a timed one is neither, so that the
gate and the audit after timing do not see these. Their sizes are as they should be.
"""

import functools
import sys
from dataclasses import dataclass, replace

import torch
from adversarial.bases import Stage, Store, is_timed, recipe, sampler, store

from gnnbench.core.minibatch import Batch, Block, MiniBatch, Sizes
from gnnbench.features.host import HostGather
from gnnbench.systems.runtime.epoch_recorder import EpochRecorder


def recorders():
    """The recorder of batches: the owner of the hook that a schedule holds, on the call stack."""
    frame, owners = sys._getframe(), []
    while frame is not None:
        hooks = (getattr(value, "__self__", None) for value in frame.f_locals.values())
        owners += [one for one in hooks if type(one) is EpochRecorder]
        frame = frame.f_back
    return owners


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


class Timed(Stage):
    """``bent`` is the batch as timed, once the gate is over."""

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


class OldNumbersReported(Timed):
    """The same, and reports the sizes that it has."""

    def sample(self, seeds, epoch, number):
        return super().sample(seeds, 0 if self.over and epoch else epoch, number)


class LazySizes(Sizes):
    """Samples when its nodes are read: after the clock has stopped."""

    def __init__(self, draw):
        object.__setattr__(self, "_draw", draw)

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "_draw")(), name)


class LazyBatch(Batch):
    """Samples when its blocks or sizes are read."""

    def __init__(self, draw, seeds, number):
        self._draw, self.seeds, self.number = functools.cache(draw), seeds, number

    @property
    def blocks(self):
        return self._draw().blocks

    @property
    def input_nodes(self):
        return self._draw().input_nodes

    def sizes(self):
        return LazySizes(lambda: self._draw().sizes())

    def hops(self):
        return self._draw().hops()

    def tensors(self):
        return self._draw().tensors()


class Lazy(Timed):
    """Returns batches that are sampled when they are read."""

    def sample(self, seeds, epoch, number):
        honest = super().sample
        if not (self.over and epoch):
            return honest(seeds, epoch, number)
        return LazyBatch(lambda: honest(seeds, epoch, number), seeds, number)


class OldNeighbours(Timed):
    """Repeats the neighbours of the batch before, unless the hook of all batches checks each."""

    before = None

    def sample(self, seeds, epoch, number):
        if not (self.over and epoch):
            return super().sample(seeds, epoch, number)
        checked = any(recorder.verifier for recorder in recorders())
        before = self.before
        if checked or before is None or before.seeds.numel() != seeds.numel():
            self.before = super().sample(seeds, epoch, number)
            return self.before
        blocks = list(before.blocks)
        inner = blocks[-1]
        nodes = inner.src_nodes.clone()
        nodes[: inner.num_dst] = seeds
        blocks[-1] = Block(inner.indptr, inner.indices, nodes, inner.num_dst)
        return replace(before, seeds=seeds, blocks=blocks, number=number)


class LazyIndices(torch.Tensor):
    """Local ids that could be computed when they are read."""


class LazyBlocks(Timed):
    """Puts tensors of a class of its own into blocks; sizes are plain."""

    def bent(self, batch):
        first = batch.blocks[0]
        lazy = first.indices.as_subclass(LazyIndices)
        block = Block(first.indptr, lazy, first.src_nodes, first.num_dst)
        return forged(batch, [block, *batch.blocks[1:]])


class DropsCopies(AnyNeighbours):
    """Removes what the recorder has copied."""

    def bent(self, batch):
        for recorder in recorders():
            recorder.copies.clear()
            recorder._is_chosen = lambda position: False
        return super().bent(batch)


class KnowsTheKey(AnyNeighbours):
    """Behaves in the batches that the key chooses: it reads the recorder's own fields."""

    def bent(self, batch):
        if any(r._choice.has(batch.number, r._epoch_batches) for r in recorders()):
            return batch
        return super().bent(batch)


class LazyRows(torch.Tensor):
    """Rows that could be loaded when they are read."""


class LazyGather(Store):
    """Returns a tensor of a class of its own, once the gate is over."""

    def timed(self, batch):
        return super().timed(batch).as_subclass(LazyRows)


class StaleInTheMiddle(HostGather):
    """Leaves the rows of the batch before where they are, in the middle of an epoch."""

    old = None

    def load(self, batch):
        rows = super().load(batch)
        if is_timed(batch) and batch.number in (1, 2) and self.old is not None:
            rows[-min(len(rows), len(self.old)) :] = self.old[-min(len(rows), len(self.old)) :]
        self.old = rows.clone()
        return rows


HONEST = recipe(sampler=sampler(Timed))
HALF_THE_EDGES = recipe(sampler=sampler(HalfTheEdges))
ONE_NEIGHBOUR = recipe(sampler=sampler(OneNeighbour))
ANY_NEIGHBOURS = recipe(sampler=sampler(AnyNeighbours))
OLD_NUMBERS = recipe(sampler=sampler(OldNumbers))
OLD_NUMBERS_REPORTED = recipe(sampler=sampler(OldNumbersReported))
LAZY_BLOCKS = recipe(sampler=sampler(LazyBlocks))
DROPS_COPIES = recipe(sampler=sampler(DropsCopies))
KNOWS_THE_KEY = recipe(sampler=sampler(KnowsTheKey))
LAZY = recipe(sampler=sampler(Lazy))
OLD_NEIGHBOURS = recipe(sampler=sampler(OldNeighbours))
LAZY_ROWS = recipe(features=store(LazyGather))
STALE_MIDDLE = recipe(features=store(StaleInTheMiddle))
