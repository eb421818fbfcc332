"""Which seeds a batch trains on."""

import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.pipelines.order import AsDrawn, Permuted


def test_batches_are_a_permutation_with_a_short_last_one():
    train = torch.arange(10, 110, 3)
    batches = Permuted(train, 8, seed=1).batches(0)
    assert [b.numel() for b in batches] == [8, 8, 8, 8, 2]
    assert torch.equal(torch.cat(batches).sort().values, train)


def test_order_depends_on_seed_and_epoch_only():
    train = torch.arange(50)
    first = torch.cat(Permuted(train, 8, seed=1).batches(0))
    assert torch.equal(first, torch.cat(Permuted(train, 50, seed=1).batches(0)))
    assert not torch.equal(first, torch.cat(Permuted(train, 8, seed=1).batches(1)))
    assert not torch.equal(first, torch.cat(Permuted(train, 8, seed=2).batches(0)))


def test_max_batches_keeps_the_first():
    order = Permuted(torch.arange(50), 8, seed=1, max_batches=2)
    whole = Permuted(torch.arange(50), 8, seed=1)
    assert len(order.batches(0)) == 2 and order.epoch_batches == 7
    assert torch.equal(order.batches(0)[1], whole.batches(0)[1])


def test_a_cells_order_is_the_cells(small_graph):
    cell = Cell("e", "s", "small", "gcn", batch_size=64, seed=5, max_batches=2)
    batches = AsDrawn().build(Job(cell, small_graph, Counts())).batches(3)
    right = Permuted(small_graph.train_idx, 64, 5, 2).batches(3)
    assert len(batches) == 2 and all(map(torch.equal, batches, right))
