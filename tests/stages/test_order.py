import torch

from gnnbench.stages.order import AsDrawn


def test_batches_are_a_permutation_with_a_short_last_one():
    train = torch.arange(10, 110, 3)
    batches = AsDrawn(train, 8, seed=1).batches(0)
    assert [b.numel() for b in batches] == [8, 8, 8, 8, 2]
    assert torch.equal(torch.cat(batches).sort().values, train)


def test_order_depends_on_seed_and_epoch_only():
    train = torch.arange(50)
    first = torch.cat(AsDrawn(train, 8, seed=1).batches(0))
    assert torch.equal(first, torch.cat(AsDrawn(train, 50, seed=1).batches(0)))
    assert not torch.equal(first, torch.cat(AsDrawn(train, 8, seed=1).batches(1)))
    assert not torch.equal(first, torch.cat(AsDrawn(train, 8, seed=2).batches(0)))


def test_max_batches_keeps_the_first():
    order = AsDrawn(torch.arange(50), 8, seed=1, max_batches=2)
    whole = AsDrawn(torch.arange(50), 8, seed=1)
    assert len(order.batches(0)) == 2 and order.epoch_batches == 7
    assert torch.equal(order.batches(0)[1], whole.batches(0)[1])
