import torch

from gnnbench.minibatch import Block
from gnnbench.models.weights import LinearWeights
from gnnbench.reference.model import layer, neighbour_sums

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
