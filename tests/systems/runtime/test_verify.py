"""Checks of complete batches, on a graph of four nodes and hand-written batches."""

from dataclasses import dataclass

import pytest
import torch
from int_tensors import ints

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.systems.runtime.spot_checks import CheckedBatch
from gnnbench.systems.runtime.verification import DESTINATIONS, Verifier
from gnnbench.validation.law import Law

# 0 <- 1, 2, 3; 1 <- 0, 0 (twice in the graph); 2 <- 3; 3 has no neighbour.
INDPTR = torch.tensor([0, 3, 5, 6, 6])
INDICES = torch.tensor([1, 2, 3, 0, 0, 3], dtype=torch.int32)


@dataclass
class Graph:
    indptr = INDPTR
    indices = INDICES
    num_nodes = 4
    features = torch.arange(8, dtype=torch.float32).view(4, 2)


def batch(offsets=(0, 2, 4), local=(2, 3, 0, 0), nodes=(0, 1, 2, 3), seeds=(0, 1)):
    """Seeds 0 and 1, two edges each: 0 <- 2, 3 and 1 <- 0, 0."""
    block = Block(ints(*offsets), ints(*local), ints(*nodes), len(seeds))
    return MiniBatch(torch.tensor(seeds), [block], len(local))


def check(verifier, batch, rows=None):
    verifier.check(CheckedBatch.whole(batch, rows, len(verifier.digests)))


def verify(*batches, rows=None, pick="floyd", fanout=2, frontier="cumulative"):
    verifier = Verifier(Graph(), Law.of(pick, INDPTR), (fanout,), frontier)
    for one in batches:
        check(verifier, one, Graph.features[one.input_nodes.long()] if rows is None else rows)
    return verifier


def test_correct_batches_pass():
    assert verify(batch(), batch(local=(3, 2, 0, 0))).fault == ""


@pytest.mark.parametrize(
    "wrong,reason",
    [
        (batch(local=(2, 2, 0, 0)), "hop 1: an edge was drawn twice for one destination"),
        (batch(local=(0, 2, 0, 0)), "hop 1: an edge is none of the graph's"),
        (
            batch((0, 1, 2), (2, 0)),
            "hop 1: a destination has another number of edges than min(2, degree)",
        ),
        (
            batch((0, 3, 4), (1, 2, 3, 0)),
            "hop 1: a destination has another number of edges than min(2, degree)",
        ),
        (batch(nodes=(1, 0, 2, 3)), "hop 1: the destinations are not the nodes known before"),
        (batch(local=(2, 4, 0, 0)), "hop 1: a local id lies outside the 4 nodes"),
        (batch(offsets=(0, 3, 2)), "hop 1: the offsets do not rise from 0 to the 4 edges"),
        (  # a row for every edge: the same edges without an id map
            batch((0, 2, 4), (2, 3, 4, 5), (0, 1, 2, 3, 0, 0)),
            "hop 1: a source node is listed twice",
        ),
    ],
)
def test_wrong_batch_is_reported_with_its_number(wrong, reason):
    assert verify(batch(), wrong, batch()).fault.startswith(f"batch 2: {reason}")


@pytest.mark.parametrize("edges", [1, 6, 1000])
@pytest.mark.parametrize("wrong", [1, 4])
def test_first_fault_is_reported_for_any_chunk_of_edges(monkeypatch, edges, wrong):
    monkeypatch.setattr("gnnbench.systems.runtime.verification.EDGES", edges)
    batches = [batch() for _ in range(5)]
    batches[wrong - 1] = batch(local=(0, 2, 0, 0))
    batches[4] = batch(local=(2, 4, 0, 0))
    assert verify(*batches).fault == f"batch {wrong}: hop 1: an edge is none of the graph's"


class Ring:
    """Every node's neighbour is its predecessor; more nodes than a check looks at."""

    num_nodes = 3 * DESTINATIONS
    indptr = torch.arange(num_nodes + 1)
    indices = torch.arange(-1, num_nodes - 1, dtype=torch.int32) % num_nodes


@pytest.mark.parametrize(
    "step,fault", [(-1, ""), (1, "batch 1: hop 1: an edge is none of the graph's")]
)
def test_some_of_many_destinations_are_checked(step, fault):
    every = torch.arange(Ring.num_nodes, dtype=torch.int32)
    local = (every + step) % Ring.num_nodes
    block = Block(Ring.indptr.int(), local, every, Ring.num_nodes)
    verifier = Verifier(Ring(), Law.of("floyd", Ring.indptr), (2,), "cumulative")
    check(verifier, MiniBatch(every.long(), [block], Ring.num_nodes))
    assert verifier.fault == fault


@pytest.mark.parametrize("node", [-1, -3, 4, 9])
def test_node_outside_the_graph_is_a_fault(node):
    """Also if no rows are loaded."""
    verifier = Verifier(Graph(), Law.of("floyd", INDPTR), (2,), "cumulative")
    check(verifier, batch(nodes=(0, 1, 2, node)))
    assert verifier.fault == "batch 1: hop 1: a node lies outside the graph's 4"


def test_input_nodes_must_be_all_known_nodes():
    class Fewer(MiniBatch):
        @property
        def input_nodes(self):
            return super().input_nodes[:3]

    correct = batch()
    fewer = Fewer(correct.seeds, correct.blocks, correct.sampled_edges)
    assert verify(batch(), fewer).fault.startswith(
        "batch 2: the rows asked for are not those of all"
    )


def without_hops(*seeds):
    return MiniBatch(torch.tensor(seeds), [], 0)


def verify_seeds(*batches):
    verifier = Verifier(Graph(), Law.of("", INDPTR), (), "cumulative")
    for one in batches:
        check(verifier, one, Graph.features[one.input_nodes])
    return verifier


def test_digest_of_batches_without_hops_depends_on_seeds():
    one, other = verify_seeds(without_hops(0, 2)), verify_seeds(without_hops(0, 3))
    assert one.fault == other.fault == "" and one.digest != other.digest
    assert verify_seeds(without_hops(2, 0)).digest == one.digest
    assert verify_seeds(batch()).fault == "batch 1: 1 blocks where 0 hops are asked for"


def test_repeated_edges_are_allowed_with_replacement():
    same = batch(local=(2, 2, 0, 0))
    assert verify(same, pick="with_replacement").fault == ""
    assert "none of the graph's" in verify(batch(local=(0, 2, 0, 0)), pick="with_replacement").fault


def test_every_row_is_checked():
    stale = Graph.features.clone()
    stale[3, 1] += 1
    assert "gathered feature rows differ" in verify(batch(), rows=stale).fault
    assert verify(batch(), rows=Graph.features).fault == ""


def test_digest_ignores_order_of_edges_and_local_ids():
    renamed = batch(local=(3, 2, 0, 0), nodes=(0, 1, 3, 2))
    assert verify(batch()).digest == verify(batch(local=(3, 2, 0, 0))).digest
    assert verify(batch()).digest == verify(renamed).digest
    assert verify(batch()).digest != verify(batch(local=(1, 3, 0, 0))).digest
    assert verify(batch()).digest != verify(batch(), batch()).digest


def test_only_new_destinations_count_with_the_new_frontier():
    """Seed 2 <- 3, then 3 without neighbours: the input layer's block has both rows."""
    inner = Block(ints(0, 1), ints(1), ints(2, 3), 1)
    outer = Block(ints(0, 1, 1), ints(1), ints(2, 3), 2)
    two = MiniBatch(torch.tensor([2]), [outer, inner], 1, frontier="new")
    verifier = Verifier(Graph(), Law.of("floyd", INDPTR), (2, 2), "new")
    check(verifier, two)
    assert verifier.fault == ""
    twice = Block(ints(0, 1, 2), ints(1, 0), ints(2, 3), 2)
    check(verifier, MiniBatch(torch.tensor([2]), [twice, inner], 2, frontier="new"))
    assert "batch 2: hop 2: a destination has another number of edges" in verifier.fault


@pytest.mark.parametrize("rows", [((0, 1, 3), (0, 0, 1)), ((0, 0, 2), (1, 0))])
def test_block_must_begin_with_the_rows_of_the_previous_hop(rows):
    """Seed 0 <- 1, then 1 <- 0, 0: with frontier=new, the outer block begins with 0 <- 1."""
    inner = Block(ints(0, 1), ints(1), ints(0, 1), 1)
    faults = []
    for offsets, local in (((0, 1, 3), (1, 0, 0)), rows):
        outer = Block(ints(*offsets), ints(*local), ints(0, 1), 2)
        law = Law.of("with_replacement", INDPTR)
        verifier = Verifier(Graph(), law, (1, 2), "new")
        check(verifier, MiniBatch(torch.tensor([0]), [outer, inner], 3, frontier="new"))
        faults.append(verifier.fault)
    assert faults == [
        "",
        "batch 1: hop 2: the block does not begin with the rows of the hop before",
    ]


def test_digest_ignores_order_of_batches():
    one, other = batch(), batch(local=(1, 3, 0, 0))
    assert verify(one, other).digest == verify(other, one).digest
    assert verify(one, other).digest != verify(one, one).digest
    assert verify(one).digest != verify(one, one).digest
