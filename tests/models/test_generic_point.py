"""Uncertain signs in float32, by hand, and points without any."""

import pytest
import torch

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.models import error_bounds
from gnnbench.models import generic_point as generic
from gnnbench.models.error_bounds import error_factor
from gnnbench.models.generic_point import generic_point, in_doubt
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import LinearWeights, make_weights

# Seeds 0, 1, 2; 0 <- 3 and 1 <- 4 in both blocks, 2 has no neighbour.
NODES = torch.arange(5)
INNER = Block(
    torch.tensor([0, 1, 2, 2, 2, 2], dtype=torch.int32),
    torch.tensor([3, 4], dtype=torch.int32),
    NODES,
    5,
)
OUTER = Block(
    torch.tensor([0, 1, 2, 2], dtype=torch.int32),
    torch.tensor([3, 4], dtype=torch.int32),
    NODES,
    3,
)
BATCH = MiniBatch(NODES[:3], [INNER, OUTER], 4)
THREE = MiniBatch(NODES[:3], [INNER, INNER, OUTER], 6)
TINY = 2.0**-30


def matrix(*rows):
    w = torch.tensor(rows, dtype=torch.float64)
    return LinearWeights(w, None, torch.zeros(w.shape[0], dtype=torch.float64))


def test_error_factor_is_the_smaller_of_two_bounds():
    u = 2.0**-24
    few, many = error_factor(torch.tensor([4.0, 10_000.0], dtype=torch.float64)).tolist()
    assert few == pytest.approx(4 * u, rel=1e-5)
    assert many == pytest.approx(8 * 100 * u, rel=1e-3)


@pytest.mark.parametrize(
    ("x", "uncertain"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], [False] * 5),
        ([0.0, 0.0, 0.0, 0.0, 0.0], [False] * 5),  # exact 0
        ([1.0, 1.0, TINY, -1.0, 1.0], [True, False, False, False, False]),  # a cancelling sum
        ([1.0, 1.0, 1.0, 1.0, TINY - 1], [False, True, False, False, False]),
        ([1.0, 1.0, 1.0, 1.0, 1e-3 - 1], [False] * 5),
    ],
)
def test_uncertain_nodes_and_seeds(x, uncertain):
    """GCN of width 1: the mean of a node and its neighbour; signs of single values are exact."""
    nodes, seeds = in_doubt(
        "gcn", [matrix([1.0]), matrix([1.0])], BATCH, torch.tensor(x).unsqueeze(1)
    )
    assert nodes.tolist() == uncertain
    # Seeds 0 and 1 also depend on 3 and 4.
    of_seeds = [uncertain[0] or uncertain[3], uncertain[1] or uncertain[4], uncertain[2]]
    assert seeds.tolist() == of_seeds


def test_errors_of_a_layer_propagate_to_the_next():
    """A value of 20 units is certain with the second layer's error of 16 units, and uncertain
    with the first layer's 9 in addition."""
    wide = matrix([1.0 + 20 * 2.0**-24, -1.0])
    two_units = matrix([1.0], [1.0])
    x = torch.ones(5, 1)
    exact, _ = in_doubt("gcn", [wide, matrix([1.0])], BATCH, torch.ones(5, 2))
    carried, seeds = in_doubt("gcn", [two_units, wide, matrix([1.0])], THREE, x)
    assert not exact.any()
    assert carried.all() and seeds.all()
    assert not in_doubt("gcn", [two_units, matrix([1.0, 1.0])], BATCH, x)[0].any()
    assert not in_doubt("gcn", [two_units, wide, matrix([1.0])], THREE, -x)[0].any()


# With bounds too wide by these factors, some of the initial points are uncertain.
WIDER = {
    "gcn": 2000, "graphsage": 2000, "gin": 30, "gat": 3000, "pinsage": 100, "gcn-symmetric": 20_000,
}  # fmt: skip


@pytest.mark.parametrize("model", sorted(MODELS))
def test_uncertain_rows_are_redrawn_until_none_is_left(model, monkeypatch):
    original = error_bounds.error_factor
    monkeypatch.setattr(error_bounds, "error_factor", lambda terms: WIDER[model] * original(terms))
    weights = [
        w.mapped(torch.Tensor.double) for w in make_weights([9, 40, 40, 3], MODELS[model], 1)
    ]
    rounds, original_in_doubt = [], generic.in_doubt
    monkeypatch.setattr(
        generic, "in_doubt", lambda *a: rounds[-1].append(original_in_doubt(*a)) or rounds[-1][-1]
    )
    for seed in range(4):
        rounds.append([])
        point = generic_point(model, weights, THREE, seed)
        *before, (left, _) = rounds[-1]
        assert all(nodes.any() for nodes, _ in before) and not left.any()
        assert point.seeds == 3 and bool((point.back != 0).all())
        assert (point.x != 0).sum(1).tolist() == [generic.VALUES_PER_ROW] * 5
    assert max(len(calls) for calls in rounds) > 1
    repeated = generic_point(model, weights, THREE, 3)
    assert torch.equal(point.x, repeated.x) and torch.equal(point.back, repeated.back)


def test_seeds_that_depend_on_uncertain_rows_are_left_out(monkeypatch):
    """A unit of the second layer is uncertain wherever its input is positive."""
    two_units, cancels = matrix([1.0], [1.0]), matrix([1.0 + TINY, -1.0], [1.0, 1.0])
    monkeypatch.setattr(
        generic, "_rows", lambda n, dim, g: torch.tensor([-1.0, -1, 1, -1, 1])[:n, None].clone()
    )
    monkeypatch.setattr(generic, "ROUNDS", 0)
    point = generic_point("gcn", [two_units, cancels, matrix([1.0, 1.0])], THREE, 0)
    # Seed 0 and its neighbour 3 are negative. Seed 1 is 0, but depends on 4; 2 is positive.
    assert (point.back != 0).squeeze(1).tolist() == [True, False, False] and point.seeds == 1
