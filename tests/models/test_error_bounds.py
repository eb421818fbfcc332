"""Bounds of float32 errors: hand-computed, and never exceeded by a correct model."""

import pytest
import torch
from check_layers import FANOUTS, HIDDEN, NODES, graph_of

from gnnbench.models import error_bounds, reference
from gnnbench.models.aggregation import Csr, DglLayers, PygLayers
from gnnbench.models.error_bounds import UNIT_ROUNDOFF, Bounded, error_factor
from gnnbench.models.gradient_check import FixedBlock
from gnnbench.models.kinds import MODELS
from gnnbench.models.stack import build

pytestmark = pytest.mark.usefixtures("one_thread")

U = UNIT_ROUNDOFF


def values(*rows):
    return Bounded.exact(torch.tensor(rows, dtype=torch.float64))


def factor(n):
    return float(error_factor(torch.tensor(float(n), dtype=torch.float64)))


def test_inputs_are_exact():
    x = values([1.0, -2.0], [0.0, 3.0])
    assert not x.bound().any() and x.nodes.tolist() == [0, 1]
    assert x.double() is x and torch.equal(x.detach(), x.value)


def test_linear_map_counts_its_terms():
    """The sum of three rows, times a matrix with two effective columns, plus a constant."""
    x = values([1.0, 0.0, 2.0], [-1.0, 0.0, 0.0], [4.0, 0.0, 1.0])
    at = torch.zeros(3, dtype=torch.int64)
    sums = x.new_zeros(2, 3).index_add(0, at, x)
    assert sums.value.tolist() == [[4, 0, 3], [0, 0, 0]]
    assert sums.size.tolist() == [[6, 0, 3], [0, 0, 0]] and sums.terms.tolist() == [3, 0]
    out = sums @ torch.tensor([[1.0], [5.0], [-2.0]], dtype=torch.float64) + torch.tensor([0.5])
    assert out.value.tolist() == [[-1.5], [0.5]] and out.size.tolist() == [[12.5], [0.5]]
    assert out.terms.tolist() == [3 + 2 + 1, 1]
    assert out.bound().tolist() == [[pytest.approx(12.5 * factor(6))], [pytest.approx(0.5 * U)]]


def test_errors_propagate_as_independent():
    x = values([1.0, 1.0]) * 3.0
    once = x.relu()  # a nonlinear function restarts the count
    assert once.error.tolist() == [[pytest.approx(3 * U)] * 2] and once.terms.tolist() == [0]
    out = once @ torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    error = 2 * 3 * U * 2**0.5
    assert out.error.tolist() == [[pytest.approx(error)]]
    assert out.bound().tolist() == [[pytest.approx(error + 12 * factor(2))]]


def test_uncertain_kink_marks_its_row_and_all_dependents():
    """Destination 1 is 1 - 1 from sources 2 and 3; the row of the larger term is marked."""
    x = values([5.0], [0.0], [1.0], [-1.0 - U])
    ends, sources = torch.tensor([0, 1, 1]), torch.tensor([0, 2, 3])
    sums = x.new_zeros(2, 1).index_add(0, ends, x[sources])
    assert sums.nodes.tolist() == [0, 3]
    opened = sums.relu()
    assert x.again.tolist() == [False, False, False, True]
    assert opened.doubt.tolist() == [False, True]
    assert opened.error[1].item() > 0  # an uncertain kink may be open
    later = opened.new_zeros(3, 1).index_add(0, torch.tensor([0, 0, 2]), opened[[0, 1, 0]])
    assert later.doubt.tolist() == [True, False, False]


def test_exact_zero_is_certain():
    x = values([0.0], [1.0])
    assert not (x * 2.0).relu().doubt.any()
    assert (x * 2.0 + torch.tensor([-2.0])).relu().doubt.tolist() == [False, True]


def test_bounds_of_quotients_and_unit_rows():
    x = values([3.0, 4.0], [0.0, 0.0])
    unit = x / x.norm(dim=1, keepdim=True).clamp_min(reference.TINY)
    assert unit.value.tolist() == [[3 / 5, 4 / 5], [0, 0]]
    assert not unit.bound()[1].any() and bool((unit.bound()[0] > U / 2).all())
    assert bool((unit.bound() < 30 * U).all())


def test_division_by_a_possible_zero_is_unbounded():
    small = values([1.0]) + torch.tensor([U - 1.0])
    assert (values([1.0]).relu() / small).bound().tolist() == [[error_bounds.UNBOUNDED]]


@pytest.mark.parametrize("spec", [Csr, DglLayers, PygLayers])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_correct_models_are_within_their_bounds(model, spec):
    """The bounds are useful: about 10 to 10,000 times the actual error."""
    check_bounds(model, spec, HIDDEN, seeds=10)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_wide_models_are_within_their_bounds(model):
    """If errors were added by magnitude, GIN would have no generic point."""
    check_bounds(model, Csr, 256, seeds=2)


def check_bounds(model, spec, hidden, seeds):
    if missing := spec().missing("cpu"):
        pytest.skip(missing.reason)
    framework, graph = spec().build(), graph_of("one class")
    for seed in range(seeds):
        first = torch.arange(seed, NODES, 50)
        fixed = FixedBlock.of(graph, model, hidden, FANOUTS, seed, first)
        assert fixed.point.seeds == 32
        blocks, x = fixed.batch.blocks, fixed.point.x
        ours = build(model, framework, x.shape[1], hidden, 1, len(FANOUTS), seed)
        with torch.no_grad():
            actual = ours(framework.blocks(fixed.batch), x)
        out = reference.forward(model, fixed.weights, blocks, Bounded.exact(x))
        exact = reference.forward(model, fixed.weights, blocks, x)
        torch.testing.assert_close(out.value, exact, rtol=1e-14, atol=1e-14)
        off, bound = (actual - exact).abs(), out.bound()
        assert bool((off <= bound).all())
        assert float(bound.norm()) < 1e4 * float(off.norm()) and float(bound.norm()) < 1e-2
