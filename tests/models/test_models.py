"""Equal weights on one fixed block: every framework gives the reference's values and gradients."""

import pytest
import torch

from gnnbench.errors import UsageError
from gnnbench.minibatch import Block, MiniBatch
from gnnbench.models.stack import MODELS, build
from gnnbench.models.weights import layer_dims, make_weights
from gnnbench.reference import model as reference
from gnnbench.systems import registry

FRAMEWORKS = {"native": "baseline", "dgl": "dgl", "pyg": "pyg-native-sampler"}


def block(indptr, indices, src, num_dst):
    return Block(
        torch.tensor(indptr, dtype=torch.int32),
        torch.tensor(indices, dtype=torch.int32),
        torch.tensor(src),
        num_dst,
    )


# Destination 1 of the outer block has no neighbour; an edge is doubled in the inner one.
OUTER = block([0, 2, 2], [2, 3], [10, 11, 12, 13], 2)
INNER = block([0, 1, 4, 4, 5], [4, 0, 5, 5, 3], [10, 11, 12, 13, 14, 15], 4)
BATCH = MiniBatch(torch.tensor([10, 11]), [INNER, OUTER], 7)


def forms(framework):
    cls = registry.get(FRAMEWORKS[framework])
    if missing := cls.missing("cpu"):
        pytest.skip(f"{framework}: {missing.reason}")
    if framework == "dgl":
        from gnnbench.foreign.dgl_import import import_dgl

        system = object.__new__(cls)
        system._dgl = import_dgl()
    else:
        system = object.__new__(cls)
    return system.convert(BATCH)


@pytest.mark.parametrize("width", [3, 8])  # the linear map goes first where it narrows the rows
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_values_and_gradients_equal_the_reference(framework, model, width):
    blocks = forms(framework)
    hidden, classes, seed = 5, 4, 2
    x = torch.randn((6, width), generator=torch.Generator().manual_seed(1))
    weights = make_weights(layer_dims(width, hidden, classes, 2), MODELS[model].WITH_SELF, seed)
    for w in weights:
        for t in (w.neighbour, w.self_, w.bias):
            if t is not None:
                t.requires_grad_()
    right = reference.forward(model, weights, BATCH.blocks, x)
    ours = build(model, framework, width, hidden, classes, 2, seed)
    out = ours(blocks, x)
    torch.testing.assert_close(out.double(), right, rtol=1e-5, atol=1e-5)
    right.pow(2).sum().backward()
    out.pow(2).sum().backward()
    total = sum(float(p.grad.abs().sum()) for p in ours.parameters())
    wanted = sum(
        float(t.grad.abs().sum())
        for w in weights
        for t in (w.neighbour, w.self_, w.bias)
        if t is not None
    )
    assert total == pytest.approx(wanted, rel=1e-4) and total > 0


def test_gcn_by_hand():
    """(sum of sampled + self) / (d + 1) with an identity weight."""
    x = torch.tensor([[1.0], [2.0], [3.0], [5.0]])
    layer = build("gcn", "native", 1, 1, 1, 1, 0).layers[0]
    with torch.no_grad():
        layer.weight.fill_(1.0)
    assert layer(OUTER, x).tolist() == [[(3.0 + 5.0 + 1.0) / 3], [2.0]]


def test_graphsage_by_hand():
    """Self plus the mean of the sampled, 0 where there are none."""
    x = torch.tensor([[1.0], [2.0], [3.0], [5.0]])
    layer = build("graphsage", "native", 1, 1, 1, 1, 0).layers[0]
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.weight_self.fill_(10.0)
    assert layer(OUTER, x).tolist() == [[4.0 + 10.0], [20.0]]


def test_unknown_model():
    with pytest.raises(UsageError, match="gcn"):
        build("gnc", "native", 4, 4, 2, 1, 0)
