"""The law of each pick, on a graph that is small enough to count by hand.

In-neighbours:  0 <- 1, 2, 3    1 <- 0    2 <- (none)    3 <- 3, 0, 0  (self-loop, parallel edge)
positions:           0  1  2         3                        4  5  6
weights:             0  2  1         0                        0  0  5
"""

import numpy as np
import pytest
import torch

from gnnbench.validation.hops import Hop, digest, structural_fault
from gnnbench.validation.law import Law

INDPTR = torch.tensor([0, 3, 4, 4, 7])
INDICES = np.array([1, 2, 3, 0, 3, 0, 0], dtype=np.int32)
WEIGHTS = torch.tensor([0, 2, 1, 0, 0, 0, 5.0])
ALL = torch.tensor([3, 0, 1, 2])


def law(pick: str) -> Law:
    return Law.of(pick, INDPTR, WEIGHTS, visits=2)


def hop(dst: list[int], edges: list[tuple[int, int, int]], visits: bool = False) -> Hop:
    d, s, p = (np.array([e[i] for e in edges], dtype=np.int64) for i in range(3))
    nodes = np.array(dst, dtype=np.int64)
    return Hop(nodes, d, s, None, p.astype(np.float32)) if visits else Hop(nodes, d, s, p)


@pytest.mark.parametrize(
    ("pick", "name", "least", "most"),
    [
        ("floyd", "without-replacement", [2, 2, 1, 0], [2, 2, 1, 0]),
        ("dgl", "without-replacement", [2, 2, 1, 0], [2, 2, 1, 0]),
        ("with_replacement", "with-replacement", [2, 2, 2, 0], [2, 2, 2, 0]),
        ("weighted_alias", "weighted", [2, 2, 0, 0], [2, 2, 0, 0]),
        ("weighted_prefix", "weighted", [2, 2, 0, 0], [2, 2, 0, 0]),
        ("random_walk", "random-walk", [1, 1, 1, 0], [2, 2, 2, 0]),
    ],
)
def test_bounds_of_counts(pick, name, least, most):
    of_pick = law(pick)
    assert of_pick.name == name
    assert [bound.tolist() for bound in of_pick.bounds(ALL, 2)] == [least, most]
    for drawn in range(9):
        fault = of_pick.count_fault(ALL, drawn, 2)
        assert (fault is None) == (sum(least) <= drawn <= sum(most))
        assert fault is None or fault.startswith(f"{drawn} edges were drawn where ")


def test_walks_have_at_most_one_edge_per_visit():
    assert law("random_walk").bounds(ALL, 9)[1].tolist() == [2, 2, 2, 0]


TWICE = [(3, 3, 4), (3, 3, 4), (1, 0, 3), (1, 0, 3)]


def test_repeats_are_accepted_with_replacement_only():
    repeated_hop = hop([3, 1, 2], TWICE)
    assert (
        structural_fault(INDPTR.numpy(), INDICES, repeated_hop, 2, law("with_replacement")) is None
    )
    once = hop([3], TWICE[:2])
    fault = structural_fault(INDPTR.numpy(), INDICES, once, 2, law("floyd"))
    assert fault == "an edge was drawn twice for one destination"


@pytest.mark.parametrize(
    ("pick", "dst", "edges", "words"),
    [
        ("with_replacement", [3, 1], TWICE[:3], "3 edges were drawn where 4 are right"),
        ("with_replacement", [3, 1], [*TWICE[:3], (3, 3, 4)], "another number of edges than 2"),
        ("with_replacement", [3, 1], [*TWICE[:3], (1, 2, 3)], "not the neighbour stored"),
        ("weighted_alias", [3], TWICE[:2], "an edge without weight was drawn"),
        ("weighted_prefix", [1], TWICE[2:], "2 edges were drawn where 0 are right"),
    ],
)
def test_violations_of_each_law_are_named(pick, dst, edges, words):
    fault = structural_fault(INDPTR.numpy(), INDICES, hop(dst, edges), 2, law(pick))
    assert fault is not None and words in fault


def test_weighted_edges_with_weight_are_accepted():
    repeated_hop = hop([0, 1, 3], [(3, 0, 6), (3, 0, 6), (0, 3, 2), (0, 2, 1)])
    assert (
        structural_fault(INDPTR.numpy(), INDICES, repeated_hop, 2, law("weighted_prefix")) is None
    )


def test_structure_of_walks():
    correct = hop([0, 1], [(0, 3, 2), (0, 0, 1), (1, 3, 3)], visits=True)
    assert structural_fault(INDPTR.numpy(), INDICES, correct, 2, law("random_walk")) is None
    for edges, words in (
        ([(0, 3, 2), (0, 3, 1), (1, 3, 3)], "drawn twice"),
        ([(0, 3, 2), (0, 0, 1)], "another number of edges than 1 to 2"),
        ([(0, 3, 2)], "1 edges were drawn where 2 to 4 are right"),
    ):
        repeated_hop = hop([0, 1], edges, visits=True)
        fault = structural_fault(INDPTR.numpy(), INDICES, repeated_hop, 2, law("random_walk"))
        assert fault is not None and words in fault
    assert digest([[correct]]) == digest([[hop([1, 0], [(1, 3, 3), (0, 0, 1), (0, 3, 2)], True)]])
    assert digest([[correct]]) != digest([[hop([0, 1], [(0, 3, 1), (0, 0, 2), (1, 3, 3)], True)]])


def test_bounds_of_all_neighbours():
    of_floyd = law("floyd")
    assert [bound.tolist() for bound in of_floyd.bounds(ALL, -1)] == [[3, 3, 1, 0]] * 2
    assert of_floyd.count_fault(ALL, 7, -1) is None
    assert of_floyd.count_fault(ALL, 6, -1) == "6 edges were drawn where 7 are right"
    one_less = hop([1, 0], [(0, 1, 0), (0, 3, 2), (1, 0, 3)])
    assert structural_fault(INDPTR.numpy(), INDICES, one_less, -1) == (
        "3 edges were drawn where 4 are right (all for each of 2 destinations); 1 of 2 destinations"
        " are wrong: node 0, of degree 3, has 2 edges, not 3"
    )
