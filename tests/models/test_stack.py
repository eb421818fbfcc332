"""Equal weights on one fixed batch: every framework gives the reference's values and gradients."""

import pytest
import torch
from model_blocks import BATCH, FRAMEWORKS, framework_of

from gnnbench.errors import UsageError
from gnnbench.models.kinds import MODELS
from gnnbench.models.stack import build
from gnnbench.models.weights import layer_dims, make_weights
from gnnbench.reference import model as reference

HIDDEN, CLASSES, SEED = 5, 4, 2


def reference_run(model, x):
    """Values, gradient of the rows, and the weights with their gradients."""
    dims = layer_dims(x.shape[1], HIDDEN, CLASSES, 2)
    weights = make_weights(dims, MODELS[model], SEED)
    leaves = [t for w in weights for t in (w.neighbour, w.self_, w.bias) if t is not None]
    for t in leaves:
        t.requires_grad_()
    rows = x.clone().requires_grad_()
    out = reference.forward(model, weights, BATCH.blocks, rows)
    out.pow(2).sum().backward()
    return out.detach(), rows.grad, leaves


@pytest.mark.parametrize("width", [3, 8])  # the linear map goes first where it narrows the rows
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_values_and_gradients_equal_the_reference(name, model, width):
    framework = framework_of(name)
    x = torch.randn((6, width), generator=torch.Generator().manual_seed(1))
    right, right_grad, leaves = reference_run(model, x)
    ours = build(model, framework, width, HIDDEN, CLASSES, 2, SEED)
    rows = x.clone().requires_grad_()
    out = ours(framework.blocks(BATCH), rows)
    out.pow(2).sum().backward()
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(out.double(), right, **close)
    torch.testing.assert_close(rows.grad, right_grad, **close)
    found = list(ours.parameters())
    assert len(found) == len(leaves)
    for leaf in leaves:  # frameworks name and order the parameters differently; the values pair
        same = [p for p in found if p.shape == leaf.shape and torch.equal(p, leaf)]
        assert any(torch.allclose(p.grad, leaf.grad, **close) for p in same)
        assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_layers_start_from_copies_of_the_weights(name):
    framework = framework_of(name)
    kind = MODELS["graphsage"]
    (weights,) = make_weights([4, 3], kind, SEED)
    before = weights.neighbour.clone()
    layer = framework.layer(kind, weights)
    with torch.no_grad():
        for p in layer.parameters():
            p.zero_()
    assert torch.equal(weights.neighbour, before)


def test_unknown_model():
    with pytest.raises(UsageError, match="unknown model 'gnc'; did you mean 'gcn'"):
        build("gnc", framework_of("native"), 4, 4, 2, 1, 0)
