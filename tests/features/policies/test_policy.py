"""Rankings of cache policies on small graphs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.core.errors import UsageError
from gnnbench.features.policies import policy
from gnnbench.features.policies.policy import (
    PRESAMPLED,
    Policy,
    cached_rows,
    hotness,
    out_degrees,
    ranked,
    ranking,
    visits,
)
from gnnbench.features.policies.trace import Trace
from gnnbench.kernels import rng


@pytest.fixture
def five_nodes(small_graph):
    """Five nodes; node 3 is an in-neighbour of four, 0 of two (a parallel edge), 1 of one."""
    return replace(
        small_graph,
        indptr=torch.tensor([0, 1, 4, 5, 6, 7]),
        indices=torch.tensor([3, 0, 0, 3, 3, 1, 3], dtype=torch.int32),
        features=small_graph.features[:5],
    )


def footprint(epoch):
    """Two batches per epoch: the timed epoch 0 and two presampled epochs."""
    batches = {
        0: [[4, 2], [4]],
        PRESAMPLED: [[1, 2], [2, 3]],
        PRESAMPLED + 1: [[1, 0], [0, 1, 3]],
    }
    return [torch.tensor(ids, dtype=torch.int32) for ids in batches[epoch]]


def rank(text, graph, epochs=()):
    return ranking(hotness(Policy.named(text), graph, footprint, epochs), 5, 5).tolist()


def test_degree_policy_counts_out_edges(five_nodes, monkeypatch):
    assert out_degrees(five_nodes).tolist() == [2, 1, 0, 4, 0]
    assert rank("degree", five_nodes) == [3, 0, 1, 2, 4]
    monkeypatch.setattr(policy, "CHUNK", 3)  # chunks of at least 5 edges, the number of nodes
    assert out_degrees(five_nodes).tolist() == [2, 1, 0, 4, 0]


def test_presampling_counts_visits_of_presampled_epochs(five_nodes):
    assert rank("presc#1", five_nodes) == [2, 1, 3, 0, 4]  # twice, once, once, never, never
    assert rank("presc#2", five_nodes) == [1, 0, 2, 3, 4]  # three times, then twice each


def test_optimal_policy_counts_visits_of_given_epochs(five_nodes):
    assert rank("optimal", five_nodes, [0]) == [4, 2, 0, 1, 3]
    assert rank("optimal", five_nodes, [PRESAMPLED]) == rank("presc#1", five_nodes)


def test_random_policy_is_a_seeded_permutation(five_nodes):
    order = rank("random", five_nodes)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order == rng.permutation(5, rng.key(5, 0, "cache")).tolist()


def test_ties_are_ranked_by_id():
    assert ranked(torch.tensor([1, 7, 1, 7, 0])).tolist() == [1, 3, 0, 2, 4]


@given(hotness=st.lists(st.integers(0, 3), max_size=30))
def test_ranked_is_a_stable_sort(hotness):
    expected = sorted(range(len(hotness)), key=lambda node: -hotness[node])
    assert ranked(torch.tensor(hotness, dtype=torch.int64)).tolist() == expected


def test_presampled_epochs_are_beyond_timed_epochs():
    from gnnbench.harness.protocol import EPOCH_NUMBERS

    assert Policy.named("presc#2").text == "presc#2"
    assert list(Policy.named("presc#2").presampled) == [PRESAMPLED, PRESAMPLED + 1]
    assert PRESAMPLED > EPOCH_NUMBERS


def test_optimal_policy_of_several_epochs_ranks_by_all_their_visits(five_nodes):
    """Node 4 is first in epoch 0, 2 in a pre-sampled one, and 2 in both together."""
    assert rank("optimal#2", five_nodes, [0, PRESAMPLED]) == [2, 4, 1, 3, 0]
    assert rank("optimal#3", five_nodes, [0, PRESAMPLED, PRESAMPLED + 1]) == [1, 2, 0, 3, 4]


def test_number_of_epochs_that_an_oracle_is_given():
    texts = ("optimal", "optimal#2", "optimal#10", "presc#2", "sieve", "random", "degree")
    policies = [Policy.named(text) for text in texts]
    assert [p.text for p in policies] == list(texts)
    assert [p.foreseen for p in policies] == [1, 2, 10, 0, 0, 0, 0]
    assert [len(p.presampled) for p in policies] == [0, 0, 0, 2, 0, 0, 0]


BATCH = st.sets(st.integers(0, 7))
EPOCHS = st.lists(st.lists(BATCH, max_size=4), min_size=2, max_size=4)


@given(epochs=EPOCHS, presampled=st.lists(BATCH, max_size=4), order=st.permutations(range(8)))
def test_optimal_policy_of_all_epochs_is_the_best_static_one(epochs, presampled, order):
    """For every cache size it hits no less than any other static cache, and no more than the
    oracles of the single epochs, in all epochs together.
    """
    drawn = [[torch.tensor(sorted(ids), dtype=torch.int64) for ids in e] for e in epochs]
    drawn.append([torch.tensor(sorted(ids), dtype=torch.int64) for ids in presampled])
    traces = [Trace.record(8, batches) for batches in drawn[:-1]]

    def hits(rankings):
        return sum(trace.hits(nodes) for trace, nodes in zip(traces, rankings, strict=True))

    def ranked_by(text, numbers=()):
        graph = SimpleNamespace(num_nodes=8)
        counted = hotness(Policy.named(text), graph, drawn.__getitem__, numbers)
        return ranking(counted, 8, 0)

    every = range(len(traces))
    overall = hits([ranked_by(f"optimal#{len(traces)}", every)] * len(traces))
    others = [torch.tensor(order), ranked(visits(8, drawn[-1])), ranked_by("random")]
    others += [ranked_by("optimal", [epoch]) for epoch in every]
    for other in others:
        assert bool((hits([other] * len(traces)) <= overall).all())
    assert bool((overall <= hits([ranked_by("optimal", [epoch]) for epoch in every])).all())


@pytest.mark.parametrize(
    "text",
    [
        "presc",
        "presc#0",
        "presc#01",
        "presc#-1",
        "optimal#",
        "optimal#0",
        "optimal#1",
        "lru",
        "",
        3,
    ],
)
def test_unknown_policy_is_refused(text):
    with pytest.raises(UsageError, match=r"it is degree, random, presc#K .* or sieve"):
        Policy.named(text)


@pytest.mark.parametrize(("ratio", "rows"), [(0, 0), (1, 100), (0.29, 29), (0.074, 7), (0.3, 30)])
def test_cached_rows_of_a_ratio(ratio, rows):
    assert cached_rows(ratio, 100) == rows
