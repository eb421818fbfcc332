import pytest
import torch

from gnnbench.core.minibatch import Block
from gnnbench.kernels.reference.aggregate import aggregate

# destination 0 <- 1 2, 1 isolated, 2 <- 0 0 (parallel)
BLOCK = Block(
    torch.tensor([0, 2, 2, 4], dtype=torch.int32),
    torch.tensor([1, 2, 0, 0], dtype=torch.int32),
    torch.arange(3),
    3,
)
X = torch.tensor([[1.0], [2.0], [4.0]])
WEIGHTS = torch.tensor([3.0, 1.0, 0.5, 1.5])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("sum", [[10.0], [0.0], [2.0]]),
        ("mean", [[2.5], [0.0], [1.0]]),
        ("gcn", [[(10.0 + 1.0) / 5], [2.0], [(2.0 + 4.0) / 3]]),
    ],
)
def test_edge_weights_by_hand(mode, expected):
    out = aggregate(BLOCK, X, mode, WEIGHTS)
    torch.testing.assert_close(out, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("mode", ["sum", "mean", "gcn"])
def test_missing_weights_are_ones(mode):
    assert torch.equal(aggregate(BLOCK, X, mode), aggregate(BLOCK, X, mode, torch.ones(4)))


@pytest.mark.parametrize("mode", ["sum", "mean", "gcn"])
def test_gradients_agree_with_finite_differences(mode):
    x, weights = X.double().requires_grad_(), WEIGHTS.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: aggregate(BLOCK, a, mode, b), (x, weights))
