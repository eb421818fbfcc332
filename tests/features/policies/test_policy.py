"""Rankings of cache policies on small graphs."""

from dataclasses import replace

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
)
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


@pytest.mark.parametrize("text", ["presc", "presc#0", "presc#01", "presc#-1", "lru", "", 3])
def test_unknown_policy_is_refused(text):
    with pytest.raises(UsageError, match=r"it is degree, random, presc#K .* optimal or sieve"):
        Policy.named(text)


@pytest.mark.parametrize(("ratio", "rows"), [(0, 0), (1, 100), (0.29, 29), (0.074, 7), (0.3, 30)])
def test_cached_rows_of_a_ratio(ratio, rows):
    assert cached_rows(ratio, 100) == rows
