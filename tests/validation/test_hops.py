"""The structural law, on a graph small enough to check by hand.

In-neighbours:  0 <- 1, 2, 3    1 <- 0    2 <- (none)    3 <- 3, 0, 0  (self-loop, parallel edge)
positions:           0  1  2         3                        4  5  6
"""

import numpy as np
import pytest
import torch

from gnnbench.core.minibatch import Block, Hop, MiniBatch
from gnnbench.validation.hops import digest, frontier_fault, structural_fault
from gnnbench.validation.law import Law

INDPTR = np.array([0, 3, 4, 4, 7])
INDICES = np.array([1, 2, 3, 0, 3, 0, 0], dtype=np.int32)


def hop(dst: list[int], edges: list[tuple[int, int, int]]) -> Hop:
    d, s, p = (np.array([e[i] for e in edges], dtype=np.int64) for i in range(3))
    return Hop(np.array(dst, dtype=np.int64), d, s, p)


GOOD = [(0, 1, 0), (0, 3, 2), (3, 0, 5), (3, 0, 6)]


def test_a_right_hop_has_no_fault():
    assert structural_fault(INDPTR, INDICES, hop([0, 2, 3], GOOD), 2) is None


def test_parallel_edges_are_distinct_by_position():
    assert structural_fault(INDPTR, INDICES, hop([3], [(3, 0, 5), (3, 0, 6)]), 2) is None


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (GOOD[:3], "3 edges were drawn where 4 are right"),
        ([*GOOD[:3], (3, 0, 5)], "drawn twice"),
        ([*GOOD[:3], (3, 3, 6)], "not the neighbour stored"),
        ([*GOOD[:3], (3, 0, 3)], "outside its destination's row"),
        # The first edge of the next row, with the right neighbour.
        ([GOOD[0], (0, 0, 3), *GOOD[2:]], "outside its destination's row"),
        ([*GOOD[:3], (1, 0, 3)], "no destination of its hop"),
        ([(0, 1, 0), (0, 2, 1), (0, 3, 2), (3, 0, 5)], "another number of edges"),
    ],
)
def test_every_broken_law_is_named(edges, words):
    fault = structural_fault(INDPTR, INDICES, hop([0, 2, 3], edges), 2)
    assert fault is not None and words in fault


def test_edges_without_positions_cannot_be_found():
    """What random walks end in need not be a neighbour."""
    right = hop([0, 2, 3], GOOD)
    bare = Hop(right.dst, right.edge_dst, right.edge_src, None)
    assert "no positions" in str(structural_fault(INDPTR, INDICES, bare, 2))
    walk = Law.of("random_walk", torch.from_numpy(INDPTR), visits=4)
    assert structural_fault(INDPTR, INDICES, hop([2], []), 2) is None
    once = Hop(np.array([0]), np.array([0]), np.array([2]), None)
    assert structural_fault(INDPTR, INDICES, once, 2, walk) is None


def test_frontiers():
    first = hop([0], [(0, 1, 0), (0, 3, 2)])
    everything = hop([3, 1, 0], [])
    only_new = hop([1, 3], [])
    seeds = np.array([0])
    assert frontier_fault([first, everything], seeds, "cumulative") is None
    assert frontier_fault([first, only_new], seeds, "new") is None
    assert "hop 2" in str(frontier_fault([first, only_new], seeds, "cumulative"))
    assert "hop 2" in str(frontier_fault([first, everything], seeds, "new"))
    assert "hop 1" in str(frontier_fault([first], np.array([1]), "new"))


def test_digest_forgets_edge_order_and_nothing_else():
    right = digest([[hop([0, 3], GOOD)]])
    assert right == digest([[hop([3, 0], GOOD[::-1])]])
    assert right != digest([[hop([0, 3], [(0, 2, 1), *GOOD[1:]])]])
    assert right != digest([[hop([0, 3], GOOD[:3])]])
    assert digest([[hop([0], GOOD[:2])], [hop([3], GOOD[2:])]]) != right


def test_hops_of_a_batch_with_either_frontier():
    # Seeds 0; hop 1 draws 0<-1 and 0<-3; hop 2 draws 1<-0 and 3<-3 (and 0<-2 when cumulative).
    outer = Block(
        torch.tensor([0, 2], dtype=torch.int32),
        torch.tensor([1, 2], dtype=torch.int32),
        torch.tensor([0, 1, 3]),
        1,
        torch.tensor([0, 2]),
    )
    cumulative = Block(
        torch.tensor([0, 1, 2, 3], dtype=torch.int32),
        torch.tensor([3, 0, 2], dtype=torch.int32),
        torch.tensor([0, 1, 3, 2]),
        3,
        torch.tensor([1, 3, 4]),
    )
    new = Block(
        torch.tensor([0, 2, 3, 4], dtype=torch.int32),
        torch.tensor([1, 2, 0, 2], dtype=torch.int32),
        torch.tensor([0, 1, 3]),
        3,
        torch.tensor([0, 2, 3, 4]),
    )
    seeds = torch.tensor([0])
    a = MiniBatch(seeds, [cumulative, outer], 5).hops()
    assert a[0].dst.tolist() == [0] and a[1].dst.tolist() == [0, 1, 3]
    assert a[1].edge_dst.tolist() == [0, 1, 3] and a[1].edge_src.tolist() == [2, 0, 3]
    b = MiniBatch(seeds, [new, outer], 4, frontier="new").hops()
    assert b[0].edge_src.tolist() == [1, 3]
    assert b[1].dst.tolist() == [1, 3] and b[1].positions.tolist() == [3, 4]
    for hops in (a, b):
        for h in hops:
            assert structural_fault(INDPTR, INDICES, h, {1: 2}.get(len(h.dst), 1)) is None
