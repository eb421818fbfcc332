"""The gradient check knows the precision of a model: what it accepts, and what it refuses."""

import pytest
import torch
from check_layers import (
    FANOUTS,
    HIDDEN,
    KINDS,
    CheckedModel,
    backward_only,
    graph_of,
    known_block,
    lost_own_row,
    missing_edges,
    no_attention,
    right_attend,
    right_sums,
    wrong_mean,
)

from gnnbench.core.fault import Fault
from gnnbench.core.precision import UNIT_ROUNDOFF
from gnnbench.models.aggregation import Csr, DglLayers, PygLayers, Spmm
from gnnbench.models.gradient_check import MARGINS, TOLERANCES, check_backward, check_forward
from gnnbench.models.kinds import MODELS
from gnnbench.models.native import Native
from gnnbench.models.stack import build

pytestmark = pytest.mark.usefixtures("one_thread")

SPECS = {"csr": Csr(), "fewest-bytes": Csr("fewest-bytes"), "dgl": DglLayers(), "pyg": PygLayers()}


class NarrowModel(CheckedModel):
    """A model in a precision."""

    def __init__(self, framework, graph, model, seed, precision="bfloat16"):
        super().__init__(framework, graph, model, seed)
        dim, classes = graph.feature_dim, graph.num_classes
        self.model = build(model, framework, dim, HIDDEN, classes, len(FANOUTS), seed, precision)


def tf32(t):
    """A value as TF32's products round it: to 10 bits behind the point."""
    mantissa, exponent = torch.frexp(t)
    return torch.ldexp((mantissa * 2**11).round() / 2**11, exponent)


class Tf32Product(torch.autograd.Function):
    """A matrix product whose operands are rounded to TF32, in both directions."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return tf32(a).mm(tf32(b))

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return tf32(grad).mm(tf32(b).t()), tf32(a).t().mm(tf32(grad))


def in_tf32(monkeypatch):
    """Has the native layers multiply as a GPU with TF32."""
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: Tf32Product.apply(a, b))
    monkeypatch.setattr(torch, "addmm", lambda own, a, b: own + Tf32Product.apply(a, b))


def both(checked, kind, model, seed, precision):
    """Errors of values and of gradients."""
    fixed = known_block(kind, model, seed)
    forward = check_forward(graph_of(kind), fixed, checked.forward, precision)
    return forward, check_backward(fixed, checked.gradients, precision)[0]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_accepted_in_bfloat16_and_refused_in_float32(kind, model, name):
    spec = SPECS[name]
    if missing := spec.missing("cpu"):
        pytest.skip(missing.reason)
    for seed in (0, 20):
        checked = NarrowModel(spec.build(), graph_of(kind), model, seed)
        forward, backward = both(checked, kind, model, seed, "bfloat16")
        assert 1e-4 < forward < 2 * TOLERANCES["bfloat16"]
        assert backward > 1e-4
        with pytest.raises(Fault, match="forward values on the fixed block are off by"):
            both(checked, kind, model, seed, "float32")


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("kind", ["equal rows", "one class"])
def test_tf32_is_accepted_in_tf32_and_refused_in_float32(kind, model, monkeypatch):
    fixed = known_block(kind, model, 0)  # in float64
    assert fixed.point.seeds
    checked = CheckedModel(Native(right_sums, right_attend), graph_of(kind), model, 0)

    def forward(batch, x):
        with monkeypatch.context() as patch:
            in_tf32(patch)
            return checked.forward(batch, x)

    def gradients(*args):
        with monkeypatch.context() as patch:
            in_tf32(patch)
            return checked.gradients(*args)

    error = check_forward(graph_of(kind), fixed, forward, "tf32")
    assert 5e-5 < error < TOLERANCES["tf32"]
    assert check_backward(fixed, gradients, "tf32")[0] > 5e-5
    with pytest.raises(Fault, match="forward values"):
        check_forward(graph_of(kind), fixed, forward)
    with pytest.raises(Fault, match="gradients of the"):
        check_backward(fixed, gradients)


@pytest.mark.parametrize("broken,model", [
    (missing_edges, "graphsage"), (missing_edges, "gin"), (missing_edges, "pinsage"),
    (missing_edges, "gcn"), (wrong_mean, "gcn"), (wrong_mean, "graphsage"), (lost_own_row, "gcn"),
])  # fmt: skip
def test_broken_aggregations_are_refused_in_bfloat16(broken, model):
    for seed in (0, 10):
        fixed, graph = known_block("one class", model, seed), graph_of("one class")
        wrong = NarrowModel(Native(broken), graph, model, seed)
        with pytest.raises(Fault, match="forward values"):
            check_forward(graph, fixed, wrong.forward, "bfloat16")


def test_broken_attention_is_refused_in_bfloat16():
    fixed, graph = known_block("one class", "gat", 0), graph_of("one class")
    wrong = NarrowModel(Native(right_sums, no_attention), graph, "gat", 0)
    with pytest.raises(Fault, match="forward values"):
        check_forward(graph, fixed, wrong.forward, "bfloat16")


def negative(block, x, mode, edge_weight=None):
    return -right_sums(block, x, mode, edge_weight)


@pytest.mark.parametrize("kind", ["equal rows", "one wide", "one class"])
@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin", "gcn-symmetric"])
def test_wrong_gradients_are_refused_in_bfloat16(model, kind):
    """Correct values, gradients of the opposite sign or none."""
    for seed in (0, 10):
        fixed, graph = known_block(kind, model, seed), graph_of(kind)
        wrong = NarrowModel(backward_only(negative), graph, model, seed)
        assert check_forward(graph, fixed, wrong.forward, "bfloat16") < TOLERANCES["bfloat16"]
        with pytest.raises(Fault, match="gradients of the"):
            check_backward(fixed, wrong.gradients, "bfloat16")
        with pytest.raises(Fault, match=r"off by 1.0e\+00"):
            check_backward(fixed, lambda batch, x, back: (None, []), "bfloat16")


def test_tolerances_follow_the_unit_roundoffs():
    assert TOLERANCES["float32"] == 5e-5
    for precision in ("tf32", "bfloat16"):
        assert TOLERANCES[precision] == 4 * UNIT_ROUNDOFF[precision]
        assert TOLERANCES[precision] > TOLERANCES["float32"]
    assert MARGINS.keys() == TOLERANCES.keys() == UNIT_ROUNDOFF.keys()


def test_sparse_products_of_torch_are_accepted_in_bfloat16():
    if missing := Spmm().missing("cpu"):
        pytest.skip(missing.reason)
    checked = NarrowModel(Spmm().build(), graph_of("one class"), "gcn-symmetric", 0)
    assert both(checked, "one class", "gcn-symmetric", 0, "bfloat16")[0] < TOLERANCES["bfloat16"]
