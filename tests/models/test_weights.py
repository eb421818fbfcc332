import torch

from gnnbench.models.kinds import GCN, GRAPHSAGE
from gnnbench.models.weights import layer_dims, make_weights


def test_one_width_per_layer_and_the_classes_last():
    assert layer_dims(100, 32, 7, 3) == [100, 32, 32, 7]
    assert layer_dims(100, 32, 7, 1) == [100, 7]


def test_weights_are_those_of_the_kind():
    first, second = make_weights([6, 4, 3], GRAPHSAGE, 1)
    assert (first.neighbour.shape, first.self_.shape, first.bias.shape) == ((4, 6), (4, 6), (4,))
    assert second.neighbour.shape == (3, 4)
    assert [w.self_ for w in make_weights([6, 4, 3], GCN, 1)] == [None, None]


def test_the_seed_decides():
    (one,), (same,), (other,) = (make_weights([6, 4], GCN, seed) for seed in (1, 1, 2))
    assert torch.equal(one.neighbour, same.neighbour)
    assert not torch.equal(one.neighbour, other.neighbour)


def test_glorot_bounds():
    (w,) = make_weights([60, 40], GCN, 1)
    bound = (6 / 100) ** 0.5
    assert 0.9 * bound < w.neighbour.abs().max() <= bound
    assert not w.bias.any()


def test_all_tensors_of_a_layer_and_a_change_of_each():
    (gcn,), (sage,) = (make_weights([6, 4], kind, 1) for kind in (GCN, GRAPHSAGE))
    assert [t.shape for t in gcn.tensors()] == [(4, 6), (4,)]
    assert [t.shape for t in sage.tensors()] == [(4, 6), (4, 6), (4,)]
    doubled = sage.mapped(lambda t: 2 * t)
    assert torch.equal(doubled.self_, 2 * sage.self_)
    assert torch.equal(doubled.neighbour, 2 * sage.neighbour)
    assert gcn.mapped(torch.abs).self_ is None
