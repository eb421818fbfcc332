"""Rankings on graphs small enough to be ranked by hand."""

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
def by_hand(small_graph):
    """Five nodes; node 3 is an in-neighbour of four, 0 of two (a parallel edge), 1 of one."""
    return replace(
        small_graph,
        indptr=torch.tensor([0, 1, 4, 5, 6, 7]),
        indices=torch.tensor([3, 0, 0, 3, 3, 1, 3], dtype=torch.int32),
        features=small_graph.features[:5],
    )


def footprint(epoch):
    """Epochs of two batches: the timed epoch 0, then those that are pre-sampled."""
    batches = {
        0: [[4, 2], [4]],
        PRESAMPLED: [[1, 2], [2, 3]],
        PRESAMPLED + 1: [[1, 0], [0, 1, 3]],
    }
    return [torch.tensor(ids, dtype=torch.int32) for ids in batches[epoch]]


def rank(text, graph, epochs=()):
    return ranking(hotness(Policy.named(text), graph, footprint, epochs), 5, 5).tolist()


def test_degree_counts_whose_in_neighbour_a_node_is(by_hand, monkeypatch):
    assert out_degrees(by_hand).tolist() == [2, 1, 0, 4, 0]
    assert rank("degree", by_hand) == [3, 0, 1, 2, 4]
    monkeypatch.setattr(policy, "CHUNK", 3)  # counted in parts of 5 edges, as there are 5 nodes
    assert out_degrees(by_hand).tolist() == [2, 1, 0, 4, 0]


def test_presampling_counts_visits_of_epochs_of_its_own(by_hand):
    assert rank("presc#1", by_hand) == [2, 1, 3, 0, 4]  # twice, once, once, never, never
    assert rank("presc#2", by_hand) == [1, 0, 2, 3, 4]  # three times, then twice each


def test_the_optimum_counts_the_epochs_that_are_measured_and_no_other(by_hand):
    assert rank("optimal", by_hand, [0]) == [4, 2, 0, 1, 3]
    assert rank("optimal", by_hand, [PRESAMPLED]) == rank("presc#1", by_hand)


def test_random_is_a_permutation_that_the_seed_decides(by_hand):
    found = rank("random", by_hand)
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert found == rng.permutation(5, rng.key(5, 0, "cache")).tolist()


def test_equals_are_ranked_by_id():
    assert ranked(torch.tensor([1, 7, 1, 7, 0])).tolist() == [1, 3, 0, 2, 4]


@given(hotness=st.lists(st.integers(0, 3), max_size=30))
def test_a_ranking_is_a_stable_sort(hotness):
    right = sorted(range(len(hotness)), key=lambda node: -hotness[node])
    assert ranked(torch.tensor(hotness, dtype=torch.int64)).tolist() == right


def test_presampled_epochs_are_none_that_a_run_times():
    from gnnbench.harness.protocol import EPOCH_NUMBERS

    assert Policy.named("presc#2").text == "presc#2"
    assert list(Policy.named("presc#2").presampled) == [PRESAMPLED, PRESAMPLED + 1]
    assert PRESAMPLED > EPOCH_NUMBERS


@pytest.mark.parametrize("text", ["presc", "presc#0", "presc#01", "presc#-1", "lru", "", 3])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(UsageError, match=r"it is degree, random, presc#K .* optimal or sieve"):
        Policy.named(text)


@pytest.mark.parametrize(("ratio", "rows"), [(0, 0), (1, 100), (0.29, 29), (0.074, 7), (0.3, 30)])
def test_a_ratio_is_of_all_nodes(ratio, rows):
    assert cached_rows(ratio, 100) == rows
