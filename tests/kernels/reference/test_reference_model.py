import math
from dataclasses import replace

import pytest
import torch

from gnnbench.core.minibatch import Block
from gnnbench.models.reference import activation, layer, neighbour_sums
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LinearWeights,
    MlpWeights,
)

BLOCK = Block(
    torch.tensor([0, 2, 2], dtype=torch.int32),
    torch.tensor([1, 2], dtype=torch.int32),
    torch.tensor([7, 8, 9]),
    2,
)
X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]], dtype=torch.float64)
EYE = torch.eye(2)


def test_gcn_layer_by_hand():
    out = layer("gcn", LinearWeights(EYE, None, torch.tensor([0.5, 0.0])), BLOCK, X)
    assert out.tolist() == [[5 / 3 + 0.5, 2.0], [0.5, 2.0]]


def test_graphsage_layer_by_hand():
    out = layer("graphsage", LinearWeights(EYE, 2 * EYE, torch.zeros(2)), BLOCK, X)
    assert out.tolist() == [[2.0 + 2.0, 3.0 + 0.0], [0.0, 4.0]]


def test_gin_layer_by_hand():
    """W_2 ReLU(W_1 (own + sum) + b_1) + b_2; W_1 is the identity, b_1 -6, W_2 adds the columns."""
    weights = MlpWeights(EYE, torch.tensor([-6.0, -6.0]), torch.ones(1, 2), torch.tensor([0.5]))
    # (1 + 0 + 4, 0 + 2 + 4) - 6 = (-1, 0).
    assert layer("gin", weights, BLOCK, X).tolist() == [[0.5], [0.5]]
    weights = replace(weights, first_bias=torch.tensor([-4.0, -4.0]))
    assert layer("gin", weights, BLOCK, X).tolist() == [[1.0 + 2.0 + 0.5], [0.5]]


def test_gat_layer_by_hand():
    """One head. The destination's own row is a part of each edge's score and of nothing else."""
    weights = AttentionWeights(
        EYE, torch.tensor([[-1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0.0, 3.0])
    )
    # Scores 1 - 0 and 1 - 4: after the LeakyReLU 1 and -0.6.
    first, second = math.exp(1), math.exp(-0.6)
    share = second / (first + second)
    expected = [[4 * share, 2 * (1 - share) + 4 * share + 3], [0.0, 3.0]]
    out = layer("gat", weights, BLOCK, X)
    torch.testing.assert_close(out, torch.tensor(expected, dtype=torch.float64))


def test_gat_heads_are_independent():
    """Equal scores of one head give the mean, scores far apart of the other the largest source."""
    weights = AttentionWeights(
        torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0], [100.0]]), torch.zeros(2, 1),
        torch.zeros(2),
    )  # fmt: skip
    assert layer("gat", weights, BLOCK, X).tolist() == [[2.0, 4.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("visits", "mean"), [(None, (0.0 + 3.0) / 2), (torch.tensor([1.0, 3.0]), 9.0 / 4)]
)
def test_pinsage_layer_by_hand(visits, mean):
    """Q is the first column minus 1, so that ReLU gives 0 and 3 for the sampled nodes."""
    weights = ConvolveWeights(
        torch.tensor([[1.0, 0.0]]), torch.tensor([-1.0]),
        torch.tensor([[1.0, 1.0, 10.0]]), torch.tensor([5.0]),
    )  # fmt: skip
    out = layer("pinsage", weights, replace(BLOCK, weights=visits), X)
    assert out.tolist() == [[1.0 + 10 * mean + 5], [2.0 + 5]]


def test_activation_is_relu_and_normalizes_rows_of_pinsage():
    x = torch.tensor([[3.0, -1.0, 4.0], [-1.0, -2.0, 0.0]], dtype=torch.float64)
    assert activation("gat", x).tolist() == [[3, 0, 4], [0, 0, 0]]
    out = activation("pinsage", x)
    torch.testing.assert_close(out, torch.tensor([[0.6, 0, 0.8], [0, 0, 0]], dtype=x.dtype))


def test_each_parallel_edge_counts():
    """Destinations 0 and 2 have no neighbour; 1 has node 3 twice and itself."""
    block = Block(
        torch.tensor([0, 0, 3, 3], dtype=torch.int32),
        torch.tensor([3, 1, 3], dtype=torch.int32),
        torch.arange(4),
        3,
    )
    x = torch.tensor([[1.0], [2.0], [4.0], [8.0]], dtype=torch.float64, requires_grad=True)
    sums = neighbour_sums(block, x)
    assert sums.tolist() == [[0.0], [18.0], [0.0]]
    sums.sum().backward()
    assert x.grad.tolist() == [[0.0], [1.0], [0.0], [2.0]]
