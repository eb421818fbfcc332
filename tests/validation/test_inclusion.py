"""The test of a sampler's law: its moments by enumeration, right picks pass, others do not."""

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
    """Node 0 has the neighbours named; no other has any."""
    degree = len(neighbours)
    indptr = torch.tensor([0] + [degree] * (max(neighbours) + 1))
    found = None if weights is None else torch.tensor(weights)
    return Graph(indptr, torch.tensor(neighbours, dtype=torch.int32), found)


def outcomes(law, places, fanout, weights):
    """Every outcome of one row with its probability: places that are picked."""
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
def test_moments_are_those_of_the_law(law, neighbours, fanout):
    weights = ([0.5, 2.0, 0.0, 1.5] if law == BY_WEIGHT else [1.0] * 9)[: len(neighbours)]
    graph = star(*neighbours, weights=weights)
    rule = Law.of(PICK[law], graph.indptr, graph.weights)
    score = torch.tensor([0.3, -1.0, 2.0, 0.7, 0.1, -0.4], dtype=torch.float64)[: len(neighbours)]

    def statistics(places):
        src = graph.indices[list(places)].long()
        by = torch.zeros(fanout, dtype=torch.int64)
        rows = _Rows(graph, rule, torch.tensor([0]), torch.tensor([fanout]), by, src)
        return [rows.scored(score), rows.beside() if law == WITHOUT else rows.repeats()]

    known = outcomes(law, len(neighbours), fanout, weights)
    found = [(statistics(places), chance) for places, chance in known]
    for which in range(2):
        values = [(one[which], chance) for one, chance in found]
        if not values[0][0][0].numel():  # parallel edges have no places
            assert which == 1 and len(set(neighbours)) < len(neighbours)
            continue
        mean = sum(chance * float(t) for (t, *_), chance in values)
        square = sum(chance * float(t) ** 2 for (t, *_), chance in values)
        assert mean == pytest.approx(0, abs=1e-12)
        assert square == pytest.approx(float(values[0][0][1]), abs=1e-12)
        told = sum(chance * float(one.drawn) for one, chance in values)
        assert told == pytest.approx(float(values[0][0].expected), abs=1e-12)
        worst = max(abs(float(t)) for (t, *_), chance in values if chance)
        assert worst <= float(values[0][0][2]) + 1e-12


def test_the_product_is_no_larger_than_one_as_a_mean():
    """Over every outcome of four rows: what bounds how often a right sampler is refused."""
    values = torch.tensor([-2.0, 0.0, 0.5, 1.5]).double()  # each as likely: mean 0
    variance, bound = (values**2).mean(), torch.tensor(2.0).double()
    total = torch.zeros(2, len(inclusion.RATES)).double()
    for four in itertools.product(values, repeat=4):
        one = _Sum.empty()
        one.add(torch.stack(four), variance.expand(4), bound.expand(4))
        total += torch.stack([one.up, one.down]).exp() / 4**4
    assert bool((total <= 1 + 1e-9).all())
    assert float(total.max()) > 0.99  # and not by far


def drawn(graph, law, fanout, generator, bend=0.0):
    """Picks of all rows; ``bend`` makes the first half of a row likelier."""
    dst = torch.arange(graph.num_nodes)
    degree = graph.indptr.diff()
    counts, src = [], []
    for node in dst.tolist():
        d = int(degree[node])
        chance = torch.ones(d).double()
        if law == BY_WEIGHT:
            chance = graph.weights[graph.indptr[node] : graph.indptr[node + 1]].double()
        chance[: d // 2] *= 1 + bend
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
def test_right_picks_pass_and_bent_ones_do_not(law, graph):
    rule = Law.of(PICK[law], graph.indptr, graph.weights)
    for bend, words in ((0.0, ""), (1.0, f"its picks are not '{law}': neighbours are picked by")):
        generator = torch.Generator().manual_seed(6)
        look = Inclusion(graph, rule)
        for _ in range(6):
            look.add(*drawn(graph, law, 5, generator, bend))
        assert look.fault.startswith(words) and bool(look.fault) == bool(words)


def test_a_fault_names_the_hop_the_direction_and_the_in_degrees():
    """Row 0 has 4 neighbours, row 1 has 8; of row 1 the first half is drawn alone, in hop 2."""
    indptr = torch.tensor([0, 4, *([12] * 20)])
    graph = Graph(indptr, torch.tensor([*range(2, 6), *range(8, 16)], dtype=torch.int32))
    look = Inclusion(graph, Law.of("floyd", indptr))
    even = itertools.cycle(itertools.combinations(range(4), 2))
    for _ in range(240):
        one = graph.indices[list(next(even))].long()
        look.add(torch.tensor([0]), torch.tensor([2]), one, hop=1)
        look.add(torch.tensor([1]), torch.tensor([2]), one + 6, hop=2)
        look.add(torch.tensor([0]), torch.tensor([2]), one, hop=2)
    hop = look._classes["place", 2]
    assert hop[2:, 2].tolist() == [240.0, 240.0] and hop[2:, 3].tolist() == [480.0, 240.0]
    assert look._where("place") == (
        "in hop 2 edges in the first half of their row were drawn too often, 720 times where 480"
        " are expected, most plainly for destinations of in-degree 8 to 15: 480, expected 240"
    )
    assert look.fault.endswith(look._where("place"))


@pytest.mark.parametrize("law", [WITHOUT, WITH])
def test_picks_that_come_again_are_found(law, graph):
    look = Inclusion(graph, Law.of(PICK[law], graph.indptr))
    picks = drawn(graph, law, 5, torch.Generator().manual_seed(7))
    look.add(*picks)
    assert look.fault == ""
    look.add(*picks)
    assert "with regard to what was picked for the same node before" in look.fault


def test_nothing_is_said_of_other_laws_nor_without_choice(graph):
    uneven, even = Law(UNEVEN, graph.indptr.diff()), Law.of("", graph.indptr)
    for law, fanout in ((uneven, 5), (even, 40)):
        look = Inclusion(graph, law)
        for _ in range(3):
            look.add(*drawn(graph, WITHOUT, fanout, torch.Generator().manual_seed(8), bend=5.0))
        assert look.fault == ""
    assert ALARM == 1e-6
