"""Rows and edges that are computed when somebody reads them, or by somebody else, or never."""

import threading
import time

import torch
from adversarial.bases import Stage, Store, recipe, sampler, store
from torch.overrides import TorchFunctionMode

from gnnbench.core.minibatch import Block


class OnDemand(TorchFunctionMode):
    """Fills a plain tensor when the first operation reads it. No code of gnnbench is changed."""

    def __init__(self):
        super().__init__()
        self.pending = {}

    def defer(self, tensor, fill):
        self.pending[id(tensor)] = tensor, fill
        return tensor

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if args and (waiting := self.pending.pop(id(args[0]), None)):
            waiting[1](waiting[0])
        return func(*args, **(kwargs or {}))


class LazyRows(Store):
    """Gathers the rows of those batches that are copied aside, and of no other."""

    def __init__(self, job):
        super().__init__(job)
        self.mode = OnDemand()
        self.mode.__enter__()

    def timed(self, batch):
        self.mode.pending.clear()  # what nobody has read
        ids = batch.input_nodes
        rows = torch.empty((ids.numel(), self._table.shape[1]))
        self.count(ids.numel(), "host")
        return self.mode.defer(rows, lambda out: self.copy_rows(ids, out))


class RowsByThread(Store):
    """A thread fills the rows after they were returned."""

    def timed(self, batch):
        rows = torch.zeros((batch.input_nodes.numel(), self._table.shape[1]))

        def late():
            time.sleep(0.002)
            self.copy_rows(batch.input_nodes, rows)

        threading.Thread(target=late).start()
        return rows


class MetaRows(Store):
    """Rows without memory."""

    def timed(self, batch):
        shape = batch.input_nodes.numel(), self._table.shape[1]
        return torch.empty(shape, device="meta")


class OneRow(Store):
    """One row in place of all, with a stride of 0."""

    def timed(self, batch):
        return self._table[batch.input_nodes[:1].long()].expand(batch.input_nodes.numel(), -1)


class FirstRows(Store):
    """The first rows of the table: a view, which costs nothing."""

    def timed(self, batch):
        return self._table[: batch.input_nodes.numel()]


class HalfPrecisionRows(Store):
    """Half of the bytes are read."""

    half = None

    def timed(self, batch):
        if self.half is None:
            self.half = self._table.bfloat16()
        return self.half[batch.input_nodes.long()].float()


class LazyBlock(Block):
    """A block that makes its edges when they are read."""

    def __init__(self, make, num_dst):
        self.make, self.num_dst, self.positions, self.weights = make, num_dst, None, None

    def __getattr__(self, name):
        block = self.make()
        self.__dict__.update(vars(block))
        return getattr(block, name)


class LazyBlocks(Stage):
    """Blocks of a class of their own, in a batch of ours."""

    def sample(self, seeds, epoch, number):
        batch = super().sample(seeds, epoch, number)
        if self.over and epoch:
            inner = batch.blocks[0]
            batch.blocks[0] = LazyBlock(lambda: inner, inner.num_dst)
        return batch


class HalfTheRows(Store):
    """Gathers every second row; the others are left from the batch before."""

    def timed(self, batch):
        rows = self._ring.rows(batch.input_nodes.numel())
        self.count(batch.input_nodes.numel(), "host")
        some = batch.input_nodes[::2]
        rows[::2] = self._table[some.long()]
        return rows


LAZY_ROWS = recipe(features=store(LazyRows))
ROWS_BY_THREAD = recipe(features=store(RowsByThread))
META_ROWS = recipe(features=store(MetaRows))
ONE_ROW = recipe(features=store(OneRow))
FIRST_ROWS = recipe(features=store(FirstRows))
HALF_PRECISION_ROWS = recipe(features=store(HalfPrecisionRows))
HALF_THE_ROWS = recipe(features=store(HalfTheRows))
LAZY_BLOCKS = recipe(sampler=sampler(LazyBlocks))
