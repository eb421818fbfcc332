"""The test of a sampler's law: moments by enumeration, and biased picks."""

import itertools
import math
from dataclasses import dataclass

import pytest
import torch

from gnnbench.validation import inclusion
from gnnbench.validation.inclusion import ALARM, Inclusion, _Rows, _Sum
from gnnbench.validation.law import BY_WEIGHT, UNEVEN, WITH, WITHOUT, Law

PICK = {WITHOUT: "floyd", WITH: "with_replacement", BY_WEIGHT: "weighted_alias"}


@dataclass
class Graph:
    indptr: torch.Tensor
    indices: torch.Tensor
    weights: torch.Tensor | None = None

    @property
    def num_nodes(self):
        return self.indptr.numel() - 1


def star(*neighbours, weights=None):
    """Node 0 has the given neighbours, other nodes have none."""
    degree = len(neighbours)
    indptr = torch.tensor([0] + [degree] * (max(neighbours) + 1))
    edge_weights = None if weights is None else torch.tensor(weights)
    return Graph(indptr, torch.tensor(neighbours, dtype=torch.int32), edge_weights)


def outcomes(law, places, fanout, weights):
    """Every outcome of one row (the sampled places) with its probability."""
    if law == WITHOUT:
        subsets = list(itertools.combinations(range(places), fanout))
        return [(one, 1 / len(subsets)) for one in subsets]
    total = sum(weights)
    return [
        (one, math.prod(weights[i] / total for i in one))
        for one in itertools.product(range(places), repeat=fanout)
    ]


CASES = [
    (WITHOUT, (1, 2, 3, 4), 2), (WITHOUT, (1, 2, 3, 4, 5, 6), 3), (WITHOUT, (5, 2, 3, 1, 4), 4),
    (WITHOUT, (1, 2, 2, 3, 2), 2), (WITH, (1, 2, 3), 4), (WITH, (1, 2, 2, 3), 3),
    (BY_WEIGHT, (1, 2, 3), 3), (BY_WEIGHT, (3, 2, 2, 1), 3),
]  # fmt: skip


@pytest.mark.parametrize("law,neighbours,fanout", CASES)
def test_moments_equal_those_of_the_law(law, neighbours, fanout):
    weights = ([0.5, 2.0, 0.0, 1.5] if law == BY_WEIGHT else [1.0] * 9)[: len(neighbours)]
    graph = star(*neighbours, weights=weights)
    rule = Law.of(PICK[law], graph.indptr, graph.weights)
    score = torch.tensor([0.3, -1.0, 2.0, 0.7, 0.1, -0.4], dtype=torch.float64)[: len(neighbours)]

    def statistics(places):
        src = graph.indices[list(places)].long()
        by = torch.zeros(fanout, dtype=torch.int64)
        rows = _Rows(graph, rule, torch.tensor([0]), torch.tensor([fanout]), by, src)
        marked = torch.tensor([True, False, True, True, False, True])[: rows.owner.numel()]
        others = [rows.beside(), rows.together(marked)] if law == WITHOUT else [rows.repeats()]
        return [rows.scored(score), *others]

    known = outcomes(law, len(neighbours), fanout, weights)
    results = [(statistics(places), chance) for places, chance in known]
    for which in range(len(results[0][0])):
        values = [(one[which], chance) for one, chance in results]
        if not values[0][0][0].numel():  # parallel edges have no places
            assert which >= 1 and len(set(neighbours)) < len(neighbours)
            continue
        mean = sum(chance * float(t) for (t, *_), chance in values)
        square = sum(chance * float(t) ** 2 for (t, *_), chance in values)
        assert mean == pytest.approx(0, abs=1e-12)
        assert square == pytest.approx(float(values[0][0][1]), abs=1e-12)
        expected_drawn = sum(chance * float(one.drawn) for one, chance in values)
        assert expected_drawn == pytest.approx(float(values[0][0].expected), abs=1e-12)
        worst = max(abs(float(t)) for (t, *_), chance in values if chance)
        assert worst <= float(values[0][0][2]) + 1e-12


def test_mean_of_the_test_statistic_is_at_most_one():
    """Over every outcome of four rows. This bounds how often a correct sampler is refused."""
    values = torch.tensor([-2.0, 0.0, 0.5, 1.5]).double()  # equally likely, with mean 0
    variance, bound = (values**2).mean(), torch.tensor(2.0).double()
    total = torch.zeros(2, len(inclusion.RATES)).double()
    for four in itertools.product(values, repeat=4):
        one = _Sum.empty()
        one.add(torch.stack(four), variance.expand(4), bound.expand(4))
        total += torch.stack([one.up, one.down]).exp() / 4**4
    assert bool((total <= 1 + 1e-9).all())
    assert float(total.max()) > 0.99  # the bound is tight


def drawn(graph, law, fanout, generator, bias=0.0):
    """Picks of all rows; ``bias`` makes the first half of a row more likely."""
    dst = torch.arange(graph.num_nodes)
    degree = graph.indptr.diff()
    counts, src = [], []
    for node in dst.tolist():
        d = int(degree[node])
        chance = torch.ones(d).double()
        if law == BY_WEIGHT:
            chance = graph.weights[graph.indptr[node] : graph.indptr[node + 1]].double()
        chance[: d // 2] *= 1 + bias
        k = min(d, fanout) if law == WITHOUT else fanout
        at = torch.multinomial(chance, k, law != WITHOUT, generator=generator)
        counts.append(k)
        src.append(graph.indices[graph.indptr[node] + at].long())
    return dst, torch.tensor(counts), torch.cat(src)


@pytest.fixture(scope="module")
def graph():
    """300 nodes of 2 to 40 neighbours."""
    generator = torch.Generator().manual_seed(5)
    degree = torch.randint(2, 41, (300,), generator=generator)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    edges = int(indptr[-1])
    indices = torch.randint(300, (edges,), generator=generator, dtype=torch.int32)
    return Graph(indptr, indices, torch.rand(edges, generator=generator) + 0.1)


@pytest.mark.parametrize("law", [WITHOUT, WITH, BY_WEIGHT])
def test_correct_picks_pass_and_biased_ones_fail(law, graph):
    rule = Law.of(PICK[law], graph.indptr, graph.weights)
    for bias, words in ((0.0, ""), (1.0, f"its picks are not '{law}': neighbours are picked by")):
        generator = torch.Generator().manual_seed(6)
        inclusion_test = Inclusion(graph, rule)
        for _ in range(6):
            inclusion_test.add(*drawn(graph, law, 5, generator, bias))
        assert inclusion_test.fault.startswith(words) and bool(inclusion_test.fault) == bool(words)


def test_fault_names_hop_direction_and_in_degrees():
    """Row 0 has 4 neighbours, row 1 has 8; only the first half of row 1 is sampled, in hop 2."""
    indptr = torch.tensor([0, 4, *([12] * 20)])
    graph = Graph(indptr, torch.tensor([*range(2, 6), *range(8, 16)], dtype=torch.int32))
    inclusion_test = Inclusion(graph, Law.of("floyd", indptr))
    even = itertools.cycle(itertools.combinations(range(4), 2))
    for _ in range(240):
        one = graph.indices[list(next(even))].long()
        inclusion_test.add(torch.tensor([0]), torch.tensor([2]), one, hop=1)
        inclusion_test.add(torch.tensor([1]), torch.tensor([2]), one + 6, hop=2)
        inclusion_test.add(torch.tensor([0]), torch.tensor([2]), one, hop=2)
    hop = inclusion_test._classes["place", 2]
    assert hop[2:, 2].tolist() == [240.0, 240.0] and hop[2:, 3].tolist() == [480.0, 240.0]
    assert inclusion_test._where("place") == (
        "in hop 2 edges in the first half of their row were drawn too often, 720 times where 480"
        " are expected, most plainly for destinations of in-degree 8 to 15: 480, expected 240"
    )
    assert inclusion_test.fault.endswith(inclusion_test._where("place"))


@pytest.mark.parametrize("law", [WITHOUT, WITH])
def test_repeated_picks_are_detected(law, graph):
    inclusion_test = Inclusion(graph, Law.of(PICK[law], graph.indptr))
    picks = drawn(graph, law, 5, torch.Generator().manual_seed(7))
    inclusion_test.add(*picks)
    assert inclusion_test.fault == ""
    inclusion_test.add(*picks)
    assert "with regard to what was picked for the same node before" in inclusion_test.fault


def test_other_laws_and_complete_rows_are_not_tested(graph):
    uneven, even = Law(UNEVEN, graph.indptr.diff()), Law.of("", graph.indptr)
    for law, fanout in ((uneven, 5), (even, 40)):
        inclusion_test = Inclusion(graph, law)
        for _ in range(3):
            inclusion_test.add(
                *drawn(graph, WITHOUT, fanout, torch.Generator().manual_seed(8), bias=5.0)
            )
        assert inclusion_test.fault == ""
    assert ALARM == 1e-6
