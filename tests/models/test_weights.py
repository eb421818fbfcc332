import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.models.kinds import GAT, GCN, GIN, GRAPHSAGE, PINSAGE
from gnnbench.models.weights import layer_dims, make_weights


def test_layer_dims_are_input_hidden_and_classes():
    assert layer_dims(100, 32, 7, 3) == [100, 32, 32, 7]
    assert layer_dims(100, 32, 7, 1) == [100, 7]


def test_graphsage_has_self_weights_and_gcn_has_none():
    first, second = make_weights([6, 4, 3], GRAPHSAGE, 1)
    assert (first.neighbour.shape, first.self_.shape, first.bias.shape) == ((4, 6), (4, 6), (4,))
    assert second.neighbour.shape == (3, 4)
    assert [w.self_ for w in make_weights([6, 4, 3], GCN, 1)] == [None, None]


def test_inner_matrices_have_the_hidden_width():
    first, last = make_weights([6, 4, 3], GIN, 1)
    assert [t.shape for t in first.tensors()] == [(4, 6), (4,), (4, 4), (4,)]
    assert [t.shape for t in last.tensors()] == [(4, 4), (4,), (3, 4), (3,)]
    first, last = make_weights([6, 4, 3], PINSAGE, 1)
    assert [t.shape for t in first.tensors()] == [(4, 6), (4,), (4, 6 + 4), (4,)]
    assert [t.shape for t in last.tensors()] == [(4, 4), (4,), (3, 4 + 4), (3,)]


def test_hidden_layer_has_eight_heads_and_output_layer_one():
    first, last = make_weights([6, 16, 3], GAT, 1)
    assert [t.shape for t in first.tensors()] == [(16, 6), (8, 2), (8, 2), (16,)]
    assert [t.shape for t in last.tensors()] == [(3, 16), (1, 3), (1, 3), (3,)]
    assert not torch.equal(first.source, first.destination)
    (only,) = make_weights([6, 3], GAT, 1)
    assert only.source.shape == (1, 3)


def test_hidden_width_must_be_a_multiple_of_the_heads():
    with pytest.raises(UsageError, match=r"'gat' has 8 heads .* hidden=12 .* a multiple of 8"):
        make_weights([6, 12, 3], GAT, 1)
    make_weights([6, 12, 3], GIN, 1)


def test_weights_depend_on_the_seed():
    (one,), (equal,), (other,) = (make_weights([6, 4], GCN, seed) for seed in (1, 1, 2))
    assert torch.equal(one.neighbour, equal.neighbour)
    assert not torch.equal(one.neighbour, other.neighbour)


def test_weights_are_within_the_glorot_bound():
    (w,) = make_weights([60, 40], GCN, 1)
    bound = (6 / 100) ** 0.5
    assert 0.9 * bound < w.neighbour.abs().max() <= bound
    assert not w.bias.any()


def test_mlp_weights_are_within_their_glorot_bounds():
    (w,) = make_weights([100, 25], GIN, 1)
    assert 0.095 < w.first.abs().max() <= 0.1
    assert 0.19 < w.second.abs().max() <= 0.2


def test_mapped_changes_every_tensor():
    (gcn,), (sage,) = (make_weights([6, 4], kind, 1) for kind in (GCN, GRAPHSAGE))
    assert [t.shape for t in gcn.tensors()] == [(4, 6), (4,)]
    assert [t.shape for t in sage.tensors()] == [(4, 6), (4, 6), (4,)]
    doubled = sage.mapped(lambda t: 2 * t)
    assert torch.equal(doubled.self_, 2 * sage.self_)
    assert torch.equal(doubled.neighbour, 2 * sage.neighbour)
    assert gcn.mapped(torch.abs).self_ is None
