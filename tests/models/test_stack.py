"""Equal weights on one fixed batch: every framework gives the reference's values and gradients."""

from dataclasses import replace

import pytest
import torch
from model_blocks import BATCH, FRAMEWORKS, block, framework_of

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.models import reference
from gnnbench.models.kinds import MODELS
from gnnbench.models.stack import Stack, build
from gnnbench.models.weights import layer_dims, make_weights

HIDDEN, CLASSES, SEED = 8, 4, 2
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
# Attention over one neighbour has no gradient, so every node of the outer block has several.
NODES = [10, 11, 12, 13, 14, 15]
MANY = MiniBatch(
    torch.tensor([10, 11]),
    [
        block([0, 2, 5, 7, 10], [4, 5, 0, 5, 3, 1, 4, 2, 3, 5], NODES, 4),
        block([0, 3, 5], [1, 2, 3, 0, 3], NODES[:4], 2),
    ],
    15,
)
WALKED = replace(
    MANY, blocks=[replace(b, weights=torch.arange(1.0, b.num_edges + 1)) for b in MANY.blocks]
)
BATCHES = {"few": BATCH, "many": MANY, "walked": WALKED}


def reference_run(model, batch, x):
    """Values, gradient of the rows, and the weights with their gradients."""
    dims = layer_dims(x.shape[1], HIDDEN, CLASSES, 2)
    weights = make_weights(dims, MODELS[model], SEED)
    leaves = [t for w in weights for t in w.tensors()]
    for t in leaves:
        t.requires_grad_()
    rows = x.clone().requires_grad_()
    out = reference.forward(model, weights, batch.blocks, rows)
    out.pow(2).sum().backward()
    return out.detach(), rows.grad, leaves


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("width", [3, 16])  # the linear map is first if it narrows the rows
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_values_and_gradients_equal_the_reference(name, model, width, batch):
    framework, batch = framework_of(name), BATCHES[batch]
    x = torch.randn((6, width), generator=torch.Generator().manual_seed(1))
    expected, expected_grad, leaves = reference_run(model, batch, x)
    built = build(model, framework, width, HIDDEN, CLASSES, 2, SEED)
    rows = x.clone().requires_grad_()
    out = built(framework.blocks(batch), rows)
    out.pow(2).sum().backward()
    torch.testing.assert_close(out.double(), expected, **CLOSE)
    torch.testing.assert_close(rows.grad, expected_grad, **CLOSE)
    parameters = list(built.parameters())
    assert len(parameters) == len(leaves)
    for leaf in leaves:  # frameworks name, shape and order parameters differently; the values pair
        same = [p for p in parameters if torch.equal(p.flatten(), leaf.flatten())]
        grads = [p.grad.view(leaf.shape) for p in same]
        assert any(torch.allclose(grad, leaf.grad, **CLOSE) for grad in grads)
        assert leaf.grad.abs().sum() > 0 or (model == "gat" and batch is BATCH)


def test_visits_affect_pinsage_only():
    for model in MODELS:
        x = torch.randn((6, 3), generator=torch.Generator().manual_seed(1))
        one, other = (reference_run(model, batch, x)[0] for batch in (MANY, WALKED))
        assert torch.equal(one, other) == (model != "pinsage")


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_gradients_agree_with_finite_differences(name, model):
    """Gradients of the rows and of all weights, in float64."""
    framework = framework_of(name)
    built = build(model, framework, 3, HIDDEN, CLASSES, 2, SEED).double()
    x = torch.randn((6, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    names = [name for name, _ in built.named_parameters()]
    noise = torch.Generator().manual_seed(4)  # a bias of 0 is a kink where nothing is aggregated
    values = [
        (p.detach() + 0.1 * torch.randn(p.shape, generator=noise)).requires_grad_()
        for p in built.parameters()
    ]
    blocks = framework.blocks(WALKED)

    def run(x, *values):
        by_name = dict(zip(names, values, strict=True))
        return torch.func.functional_call(built, by_name, (blocks, x))

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), *values))


def test_unit_rows_normalizes_rows_between_layers():
    """A row of zeros is unchanged."""

    class Same(torch.nn.Module):
        def forward(self, block, x):
            return x

    x = torch.tensor([[3.0, 4.0, -7.0], [-1.0, 0.0, -2.0]])
    assert Stack([Same(), Same()])([None] * 2, x).tolist() == [[3, 4, 0], [0, 0, 0]]
    out = Stack([Same(), Same()], unit_rows=True)([None] * 2, x)
    torch.testing.assert_close(out, torch.tensor([[0.6, 0.8, 0.0], [0.0, 0.0, 0.0]]))
    # Values of the output layer are unchanged.
    assert torch.equal(Stack([Same()], unit_rows=True)([None], x), x)


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


def test_unknown_model_is_refused():
    with pytest.raises(UsageError, match="unknown model 'gnc'; did you mean 'gcn'"):
        build("gnc", framework_of("native"), 4, 4, 2, 1, 0)


def precise(weight, precision, relu=False):
    """A model of GCN layers with this 1 x 1 matrix each, on nodes without neighbours."""
    count = 2 if relu else 1
    model = build("gcn", framework_of("native"), 1, 1, 1, count, 0, precision)
    for layer in model.layers:
        with torch.no_grad():
            layer.weight.fill_(weight)
    alone = block([0, 0], [], [0], 1)
    return model, [alone] * count


@pytest.mark.parametrize("precision,row,value", [
    ("float32", 257.0, 257.0), ("bfloat16", 257.0, 256.0),  # 8 bits: 257 is a tie, to even
    ("float32", 1 + 2.0**-9, 1 + 2.0**-9), ("bfloat16", 1 + 2.0**-9, 1.0),
    ("tf32", 257.0, 257.0),  # a setting of GPUs
])  # fmt: skip
def test_products_have_the_precision_and_parameters_are_float32(precision, row, value):
    """By hand: a product with 1, and its gradients, which are the rounded row and 1."""
    model, blocks = precise(1.0, precision)
    out = model(blocks, torch.tensor([[row]]))
    assert (out.dtype, out.item()) == (torch.float32, value)
    out.sum().backward()
    (layer,) = model.layers
    assert (layer.weight.dtype, layer.weight.grad.dtype) == (torch.float32, torch.float32)
    assert (layer.weight.grad.item(), layer.bias.grad.item()) == (value, 1.0)


def test_weights_are_rounded_in_products_and_not_in_memory():
    model, blocks = precise(1 + 2.0**-9, "bfloat16")
    assert model(blocks, torch.tensor([[2.0]])).item() == 2.0
    assert model.layers[0].weight.item() == 1 + 2.0**-9


@pytest.mark.parametrize("precision,value", [("float32", 257.0), ("bfloat16", 256.0)])
def test_a_single_layer_has_the_precision_of_the_model(precision, value):
    """As the evaluator calls it."""
    model, blocks = precise(1.0, precision)
    assert model.layer(0, blocks[0], torch.tensor([[257.0]])).item() == value
    assert not torch.is_autocast_enabled("cpu")


def test_dropout_masks_act_between_narrow_layers():
    model, blocks = precise(1.0, "bfloat16", relu=True)
    model.masks = lambda layer, x: 2 * x
    assert model(blocks, torch.tensor([[257.0]])).item() == 512.0
