"""The gradient check accepts all correct models and refuses all broken ones."""

from dataclasses import replace

import pytest
import torch
from check_layers import (
    BROKEN_ATTENTION,
    HIDDEN,
    KINDS,
    LOST_GRADIENTS,
    CheckedModel,
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


def check_both(checked, graph, fixed):
    """Both errors, and the number of weights whose gradients were compared."""
    forward = check_forward(graph, fixed, checked.forward)
    return (forward, *check_backward(fixed, checked.gradients))


@pytest.mark.parametrize("spec", SEEDS)
@pytest.mark.parametrize(("kind", "model"), CASES)
def test_correct_models_are_accepted(kind, model, spec):
    if missing := spec().missing("cpu"):
        pytest.skip(missing.reason)
    framework, graph = spec().build(), graph_of(kind)
    for seed in SEEDS[spec]:
        fixed = known_block(kind, model, seed)
        forward, backward, compared = check_both(
            CheckedModel(framework, graph, model, seed), graph, fixed
        )
        assert forward < 2e-6 and backward < 2e-6
        assert compared == sum(len(w.tensors()) for w in fixed.weights)
        assert fixed.point.seeds == 32


def assert_gradients_refused(framework, kind, model, seed):
    """Correct values, and wrong gradients."""
    graph, fixed = graph_of(kind), known_block(kind, model, seed)
    checked = CheckedModel(framework, graph, model, seed)
    assert check_forward(graph, fixed, checked.forward) < 2e-6
    with pytest.raises(Fault, match="gradients of the input rows"):
        check_backward(fixed, checked.gradients)


def assert_refused(both, backward, kind, model, seeds=BROKEN_SEEDS):
    """Wrong values of ``both`` are refused, and wrong gradients of ``backward``."""
    graph = graph_of(kind)
    for seed in seeds:
        fixed = known_block(kind, model, seed)
        with pytest.raises(Fault, match="forward values"):
            check_forward(graph, fixed, CheckedModel(both, graph, model, seed).forward)
        assert_gradients_refused(backward, kind, model, seed)


@pytest.mark.parametrize(
    ("kind", "model", "broken"),
    [
        (kind, model, broken)
        for kind, model in CASES
        if MODELS[model].form != "attention"
        for broken in broken_for(model)
    ],
)
def test_broken_aggregations_are_refused(kind, model, broken):
    assert_refused(Native(broken), backward_only(broken), kind, model)


@pytest.mark.parametrize("broken", BROKEN_ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_broken_attention_is_refused(kind, broken):
    assert_refused(Native(right_sums, broken), backward_only(broken), kind, "gat")


@pytest.mark.parametrize("lost", LOST_GRADIENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_attention_without_its_gradient_is_refused(kind, lost):
    """As in FastGL's artifact: correct values, and only a part of the gradient."""
    for seed in BROKEN_SEEDS:
        assert_gradients_refused(Native(right_sums, lost), kind, "gat", seed)


@pytest.mark.parametrize("name", ["source", "destination"])
@pytest.mark.parametrize("kind", KINDS)
def test_lost_gradient_of_attention_vectors_is_refused(kind, name):
    def change(named):
        return {n: 0 * g if n.endswith(name) else g for n, g in named.items()}

    graph = graph_of(kind)
    for seed in BROKEN_SEEDS:
        fixed = known_block(kind, "gat", seed)
        checked = CheckedModel(Native(right_sums, right_attend), graph, "gat", seed, change)
        with pytest.raises(Fault, match="gradients of the weights"):
            check_backward(fixed, checked.gradients)


class LostOwnRow(Native):
    """The destination's own row has no gradient, or neither value nor gradient."""

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
def test_lost_own_row_of_graphsage_is_caught(kind):
    assert_refused(LostOwnRow(True), LostOwnRow(False), kind, "graphsage", [5])


def rounded(dtype):
    return lambda g: g.to(dtype).float()


WRONG_WEIGHTS = {
    "a scaled gradient": lambda g: 1.001 * g,
    "none": lambda g: None,
    "a wrong row": lambda g: g.roll(1, 0) if g.shape[0] > 1 else 2 * g,
    "float16": rounded(torch.float16),
    "bfloat16": rounded(torch.bfloat16),
}


# Covers each pair of graph and model, graph and fault, and model and fault.
SQUARE = [
    (KINDS[(m + w) % len(KINDS)], model, wrong)
    for m, model in enumerate(sorted(MODELS))
    for w, wrong in enumerate(WRONG_WEIGHTS)
]


@pytest.mark.parametrize(("last", "what"), [("weight", "weights"), ("bias", "biases")])
@pytest.mark.parametrize(("kind", "model", "wrong"), SQUARE)
def test_wrong_gradients_of_weights_are_caught(kind, model, last, what, wrong):
    """Gradients of all weights, or of all biases."""

    def change(named):
        return {n: WRONG_WEIGHTS[wrong](g) if n.endswith(last) else g for n, g in named.items()}

    graph = graph_of(kind)
    fixed = known_block(kind, model, 10)
    checked = CheckedModel(Native(right_sums, right_attend), graph, model, 10, change)
    with pytest.raises(Fault, match=f"gradients of the {what}"):
        check_backward(fixed, checked.gradients)


def test_transposed_weights_are_not_compared():
    """A framework may store matrices transposed; its biases are compared."""
    graph = graph_of("constant")
    fixed = fixed_block(graph, "gcn", 1)
    checked = CheckedModel(Native(right_sums), graph, "gcn", 1)

    def transposed(*args):
        rows, parameters = checked.gradients(*args)
        return rows, [(p.t(), g.t()) if p.dim() == 2 else (p, g) for p, g in parameters]

    assert check_backward(fixed, transposed)[1] == 3


def test_model_without_gradients_is_caught():
    graph = graph_of("equal rows")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match=r"are off by 1.0e\+00"):
        check_backward(fixed, lambda batch, x, backward: (None, []))


def test_nan_values_are_caught():
    graph = graph_of("constant")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match="off by nan"):
        check_forward(graph, fixed, lambda batch, x: torch.full((32, 4), float("nan")))


def test_nonzero_values_are_caught_where_zero_is_correct():
    """On rows of zeros, correct values are 0, so a relative error is infinite."""
    graph = graph_of("zeros")
    fixed = fixed_block(graph, "gcn", 2)
    with pytest.raises(Fault, match="off by inf"):
        check_forward(graph, fixed, lambda batch, x: torch.full((32, 4), 1e-30))


ISOLATED = Block(torch.zeros(2, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), SEED, 1)


def test_cancelling_sum_is_accepted_within_float32_error():
    """0.3 * 0.7 - 0.7 * 0.29999 loses most digits of float32 and all of half precision."""
    w = torch.tensor([[0.7, -0.29999]])
    weights = LinearWeights(w.double(), None, torch.zeros(1, dtype=torch.float64))
    x = torch.tensor([[0.3, 0.7]])
    batch = MiniBatch(SEED, [ISOLATED], 0)
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


def test_model_without_a_generic_point_is_a_fault(monkeypatch):
    monkeypatch.setattr("gnnbench.models.error_bounds.error_factor", lambda terms: 1e6 * terms)
    with pytest.raises(Fault, match=f"cannot be checked in float32 at hidden={HIDDEN}"):
        fixed_block(graph_of("constant"), "gcn", 0)


def test_wide_model_is_checked_with_fewer_neighbours(monkeypatch):
    original = gradient_check.generic_point

    def point(model, weights, batch, seed):
        candidate = original(model, weights, batch, seed)
        return (
            gradient_check.Point(candidate.x, candidate.back, 3)
            if batch.blocks[-1].num_edges > 40
            else candidate
        )

    graph = graph_of("constant")
    before = fixed_block(graph, "gcn", 0)
    monkeypatch.setattr(gradient_check, "generic_point", point)
    after = fixed_block(graph, "gcn", 0)
    assert before.batch.blocks[-1].num_edges > 40 >= after.batch.blocks[-1].num_edges
