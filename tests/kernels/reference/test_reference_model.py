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


def test_gcn_row_by_row():
    out = layer("gcn", LinearWeights(EYE, None, torch.tensor([0.5, 0.0])), BLOCK, X)
    assert out.tolist() == [[5 / 3 + 0.5, 2.0], [0.5, 2.0]]


def test_graphsage_row_by_row():
    out = layer("graphsage", LinearWeights(EYE, 2 * EYE, torch.zeros(2)), BLOCK, X)
    assert out.tolist() == [[2.0 + 2.0, 3.0 + 0.0], [0.0, 4.0]]


def test_gin_row_by_row():
    """W_2 ReLU(W_1 (own + sum) + b_1) + b_2, W_1 the identity less 6, W_2 both columns' sum."""
    weights = MlpWeights(EYE, torch.tensor([-6.0, -6.0]), torch.ones(1, 2), torch.tensor([0.5]))
    # (1 + 0 + 4, 0 + 2 + 4) = (5, 6), less 6 (-1, 0).
    assert layer("gin", weights, BLOCK, X).tolist() == [[0.5], [0.5]]
    weights = replace(weights, first_bias=torch.tensor([-4.0, -4.0]))
    assert layer("gin", weights, BLOCK, X).tolist() == [[1.0 + 2.0 + 0.5], [0.5]]


def test_gat_row_by_row():
    """One head; the destination's own row is in the scores only, in each edge's."""
    weights = AttentionWeights(
        EYE, torch.tensor([[-1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0.0, 3.0])
    )
    # Scores 1 - 0 and 1 - 4: after the LeakyReLU 1 and -0.6.
    first, second = math.exp(1), math.exp(-0.6)
    share = second / (first + second)
    right = [[4 * share, 2 * (1 - share) + 4 * share + 3], [0.0, 3.0]]
    out = layer("gat", weights, BLOCK, X)
    torch.testing.assert_close(out, torch.tensor(right, dtype=torch.float64))


def test_gat_has_heads_of_their_own():
    """Two heads of the same rows: one takes the mean, one nearly its largest source."""
    weights = AttentionWeights(
        torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0], [100.0]]), torch.zeros(2, 1),
        torch.zeros(2),
    )  # fmt: skip
    assert layer("gat", weights, BLOCK, X).tolist() == [[2.0, 4.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("visits", "mean"), [(None, (0.0 + 3.0) / 2), (torch.tensor([1.0, 3.0]), 9.0 / 4)]
)
def test_pinsage_row_by_row(visits, mean):
    """Q takes the first column less 1: ReLU gives 0 and 3 of the sampled."""
    weights = ConvolveWeights(
        torch.tensor([[1.0, 0.0]]), torch.tensor([-1.0]),
        torch.tensor([[1.0, 1.0, 10.0]]), torch.tensor([5.0]),
    )  # fmt: skip
    out = layer("pinsage", weights, replace(BLOCK, weights=visits), X)
    assert out.tolist() == [[1.0 + 10 * mean + 5], [2.0 + 5]]


def test_between_layers():
    x = torch.tensor([[3.0, -1.0, 4.0], [-1.0, -2.0, 0.0]], dtype=torch.float64)
    assert activation("gat", x).tolist() == [[3, 0, 4], [0, 0, 0]]
    out = activation("pinsage", x)
    torch.testing.assert_close(out, torch.tensor([[0.6, 0, 0.8], [0, 0, 0]], dtype=x.dtype))


def test_parallel_edges_count_each():
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
