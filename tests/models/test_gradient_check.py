"""No right model is refused, whatever the graph's rows; every broken one is, on the same graphs."""

from dataclasses import replace

import pytest
import torch
from check_layers import (
    BROKEN_ATTENTION,
    HIDDEN,
    KINDS,
    LOST_GRADIENTS,
    Looked,
    backward_only,
    broken_for,
    fixed_block,
    graph_of,
    known_block,
    right_attend,
    right_sums,
)

from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.models import gradient_check
from gnnbench.models.aggregation import Csr, DglLayers, PygLayers
from gnnbench.models.generic_point import Point
from gnnbench.models.gradient_check import FixedBlock, check_backward, check_forward
from gnnbench.models.kinds import MODELS
from gnnbench.models.native import Native, NativeLayer
from gnnbench.models.weights import LinearWeights

pytestmark = pytest.mark.usefixtures("one_thread")

SEED = torch.zeros(1, dtype=torch.int64)
SEEDS = {Csr: range(0, 80, 10), DglLayers: range(0, 80, 40), PygLayers: range(0, 80, 40)}
BROKEN_SEEDS = (0, 10)
CASES = [(kind, model) for kind in KINDS for model in sorted(MODELS)]


def passes(looked, graph, fixed):
    """Both errors, and how many weights' gradients were compared."""
    forward = check_forward(graph, fixed, looked.forward)
    return (forward, *check_backward(fixed, looked.gradients))


@pytest.mark.parametrize("spec", SEEDS)
@pytest.mark.parametrize(("kind", "model"), CASES)
def test_no_right_model_is_refused(kind, model, spec):
    if missing := spec().missing("cpu"):
        pytest.skip(missing.reason)
    framework, graph = spec().build(), graph_of(kind)
    for seed in SEEDS[spec]:
        fixed = known_block(kind, model, seed)
        forward, backward, compared = passes(Looked(framework, graph, model, seed), graph, fixed)
        assert forward < 2e-6 and backward < 2e-6
        assert compared == sum(len(w.tensors()) for w in fixed.weights)
        assert fixed.point.seeds == 32


def assert_refused(broken, both, kind, model):
    """Its values, and its gradients where the values are right."""
    graph = graph_of(kind)
    for seed in BROKEN_SEEDS:
        fixed = known_block(kind, model, seed)
        with pytest.raises(Fault, match="forward values"):
            check_forward(graph, fixed, Looked(both, graph, model, seed).forward)
        back = Looked(backward_only(broken), graph, model, seed)
        assert check_forward(graph, fixed, back.forward) < 2e-6
        with pytest.raises(Fault, match="gradients of the input rows"):
            check_backward(fixed, back.gradients)


@pytest.mark.parametrize(
    ("kind", "model", "broken"),
    [
        (kind, model, broken)
        for kind, model in CASES
        if MODELS[model].form != "attention"
        for broken in broken_for(model)
    ],
)
def test_no_broken_aggregation_passes(kind, model, broken):
    assert_refused(broken, Native(broken), kind, model)


@pytest.mark.parametrize("broken", BROKEN_ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_no_broken_attention_passes(kind, broken):
    assert_refused(broken, Native(right_sums, broken), kind, "gat")


@pytest.mark.parametrize("lost", LOST_GRADIENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_attention_without_its_gradient_is_refused(kind, lost):
    """As FastGL's artifact has none: right values, and a part of the gradient."""
    graph = graph_of(kind)
    for seed in BROKEN_SEEDS:
        fixed = known_block(kind, "gat", seed)
        looked = Looked(Native(right_sums, lost), graph, "gat", seed)
        assert check_forward(graph, fixed, looked.forward) < 2e-6
        with pytest.raises(Fault, match="gradients of the input rows"):
            check_backward(fixed, looked.gradients)


@pytest.mark.parametrize("name", ["source", "destination"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_gradient_of_attention_vectors_alone_is_refused(kind, name):
    def change(named):
        return {n: 0 * g if n.endswith(name) else g for n, g in named.items()}

    graph = graph_of(kind)
    for seed in BROKEN_SEEDS:
        fixed = known_block(kind, "gat", seed)
        looked = Looked(Native(right_sums, right_attend), graph, "gat", seed, change)
        with pytest.raises(Fault, match="gradients of the weights"):
            check_backward(fixed, looked.gradients)


class LostOwnRow(Native):
    """The destination's own row gets no gradient; or no value, either."""

    def __init__(self, forward_too):
        super().__init__(right_sums)
        self._zero = forward_too

    def layer(self, kind, weights):
        layer = NativeLayer(kind, weights, right_sums)
        right, zero = layer.forward, self._zero

        def forward(block, x, edge_weight=None):
            own = x[: block.num_dst] @ layer.weight_self.t()
            return right(block, x) - own + (0 if zero else own.detach())

        layer.forward = forward
        return layer


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_own_row_of_graphsage_is_caught(kind):
    graph = graph_of(kind)
    fixed = known_block(kind, "graphsage", 5)
    with pytest.raises(Fault, match="forward values"):
        check_forward(graph, fixed, Looked(LostOwnRow(True), graph, "graphsage", 5).forward)
    back = Looked(LostOwnRow(False), graph, "graphsage", 5)
    assert check_forward(graph, fixed, back.forward) < 2e-6
    with pytest.raises(Fault, match="gradients of the input rows"):
        check_backward(fixed, back.gradients)


def rounded(dtype):
    return lambda g: g.to(dtype).float()


WRONG_WEIGHTS = {
    "a scaled gradient": lambda g: 1.001 * g,
    "none": lambda g: None,
    "a wrong row": lambda g: g.roll(1, 0) if g.shape[0] > 1 else 2 * g,
    "float16": rounded(torch.float16),
    "bfloat16": rounded(torch.bfloat16),
}


# Each kind of graph meets each model and each fault, and each model each fault.
SQUARE = [
    (KINDS[(m + w) % len(KINDS)], model, wrong)
    for m, model in enumerate(sorted(MODELS))
    for w, wrong in enumerate(WRONG_WEIGHTS)
]


@pytest.mark.parametrize(("last", "what"), [("weight", "weights"), ("bias", "biases")])
@pytest.mark.parametrize(("kind", "model", "wrong"), SQUARE)
def test_wrong_gradients_of_weights_are_caught(kind, model, last, what, wrong):
    """Of all layers' weights, or of all layers' biases."""

    def change(named):
        return {n: WRONG_WEIGHTS[wrong](g) if n.endswith(last) else g for n, g in named.items()}

    graph = graph_of(kind)
    fixed = known_block(kind, model, 10)
    looked = Looked(Native(right_sums, right_attend), graph, model, 10, change)
    with pytest.raises(Fault, match=f"gradients of the {what}"):
        check_backward(fixed, looked.gradients)


def test_weights_in_a_form_of_their_own_are_left_to_the_rows():
    """A framework that keeps a matrix transposed, and passes its biases."""
    graph = graph_of("constant")
    fixed = fixed_block(graph, "gcn", 1)
    looked = Looked(Native(right_sums), graph, "gcn", 1)

    def transposed(*given):
        rows, parameters = looked.gradients(*given)
        return rows, [(p.t(), g.t()) if p.dim() == 2 else (p, g) for p, g in parameters]

    assert check_backward(fixed, transposed)[1] == 3


def test_a_model_without_a_way_back_is_caught():
    graph = graph_of("equal rows")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match=r"are off by 1.0e\+00"):
        check_backward(fixed, lambda batch, x, back: (None, []))


def test_not_a_number_is_caught():
    graph = graph_of("constant")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match="off by nan"):
        check_forward(graph, fixed, lambda batch, x: torch.full((32, 4), float("nan")))


def test_something_where_nothing_is_right_is_caught():
    """On rows of zeros the right values are 0, and no share of them."""
    graph = graph_of("zeros")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match="off by inf"):
        check_forward(graph, fixed, lambda batch, x: torch.full((32, 4), 1e-30))


ALONE = Block(torch.zeros(2, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), SEED, 1)


def test_a_sum_that_cancels_is_right_as_far_as_float32_goes():
    """0.3 * 0.7 - 0.7 * 0.29999: most of what float32 has is gone, and half precision has none."""
    w = torch.tensor([[0.7, -0.29999]])
    weights = LinearWeights(w.double(), None, torch.zeros(1, dtype=torch.float64))
    x = torch.tensor([[0.3, 0.7]])
    batch = MiniBatch(SEED, [ALONE], 0)
    fixed = FixedBlock("gcn", batch, [weights], Point(x, torch.ones(1, 1), 1))
    graph = replace(graph_of("constant"), features=x)

    def products(x):
        return (x * w).sum(1, keepdim=True)

    assert 5e-5 < check_forward(graph, fixed, lambda batch, x: products(x)) < 5e-3
    for wrong in (
        lambda batch, x: products(x.to(torch.float16).float()),
        lambda batch, x: products(x.to(torch.bfloat16).float()),
        lambda batch, x: products(x) * 1.5,
    ):
        with pytest.raises(Fault, match="forward values"):
            check_forward(graph, fixed, wrong)


def test_values_of_another_shape_are_caught():
    graph = graph_of("constant")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match=r"have the shape \[32, 1\] where \[32, 4\] is right"):
        check_forward(graph, fixed, lambda batch, x: torch.zeros(32, 1))


def test_a_model_that_has_no_generic_point_is_told(monkeypatch):
    monkeypatch.setattr("gnnbench.models.error_bounds.error_factor", lambda terms: 1e6 * terms)
    with pytest.raises(Fault, match=f"cannot be checked in float32 at hidden={HIDDEN}"):
        fixed_block(graph_of("constant"), "gcn", 0)


def test_a_wide_model_is_checked_on_fewer_neighbours(monkeypatch):
    right = gradient_check.generic_point

    def point(model, weights, batch, seed):
        found = right(model, weights, batch, seed)
        return (
            gradient_check.Point(found.x, found.back, 3)
            if batch.blocks[-1].num_edges > 40
            else found
        )

    graph = graph_of("constant")
    before = fixed_block(graph, "gcn", 0)
    monkeypatch.setattr(gradient_check, "generic_point", point)
    after = fixed_block(graph, "gcn", 0)
    assert before.batch.blocks[-1].num_edges > 40 >= after.batch.blocks[-1].num_edges
