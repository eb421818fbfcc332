"""Hits by hand, and against a cache that is asked node by node."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.features.policies.trace import Trace

BATCHES = [[0, 2], [2, 3], [2, 0, 1]]


def trace(batches, num_nodes=5, dtype=torch.int32):
    return Trace.record(num_nodes, [torch.tensor(ids, dtype=dtype) for ids in batches])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_hits_of_every_size_by_hand(dtype):
    made = trace(BATCHES, dtype=dtype)
    assert made.requests == 7
    assert made.visits.tolist() == [2, 1, 3, 1, 0]
    assert made.optimal.tolist() == [2, 0, 1, 3, 4]
    assert made.hits(made.optimal).tolist() == [0, 3, 5, 6, 7, 7]
    assert made.hits(torch.tensor([4, 3, 1, 0, 2])).tolist() == [0, 0, 1, 2, 4, 7]
    assert made.hits_at(made.optimal, [0, 0.2, 0.4, 1]) == [0, 3, 5, 7]


def test_sieve_by_hand():
    # With room for one: 2 stands in for 0, is met again in the next batch and once more.
    assert trace([[0], [2], [2], [2]]).sieve_hits([0, 0.2, 1]) == [0, 2, 2]


def test_sieve_goes_on_from_what_an_earlier_trace_has_left():
    before = trace([[0, 1], [0, 3]])
    assert trace([[2], [1]]).sieve_hits([0.4, 1]) == [0, 0]
    # 1 was evicted where there is room for two, 0 and 3 are there.
    assert trace([[0, 2], [1]]).sieve_hits([0, 0.4, 1], before) == [0, 1, 2]
    assert trace([[0, 3]]).sieve_hits([0.4], before) == [2]


def test_an_empty_trace_hits_nothing():
    made = trace([])
    assert made.hits(torch.arange(5)).tolist() == [0] * 6
    assert made.hits_at(torch.arange(5), [0, 1]) == made.sieve_hits([0, 1]) == [0, 0]


def test_a_recorded_trace_is_a_copy():
    ids = torch.tensor([1, 2], dtype=torch.int32)
    made = Trace.record(5, [ids])
    ids[0] = 4
    assert made.batches[0].tolist() == [1, 2]


def test_the_order_within_a_batch_is_no_matter_and_that_of_batches_is():
    one, other = trace([[0, 1], [2, 0], [0, 1]]), trace([[1, 0], [0, 2], [1, 0]])
    assert [b.tolist() for b in one.batches] == [b.tolist() for b in other.batches]
    assert one.sieve_hits([0.4]) == other.sieve_hits([0.4])
    assert one.sieve_hits([0.4]) != trace([[2, 0], [0, 1], [0, 1]]).sieve_hits([0.4])


batches = st.lists(st.lists(st.integers(0, 8), unique=True, max_size=9), max_size=8)


@given(batches=batches, ranking=st.permutations(range(9)), rows=st.integers(0, 9))
def test_hits_are_those_of_a_cache_asked_node_by_node(batches, ranking, rows):
    made, cached = trace(batches, 9), set(ranking[:rows])
    asked = sum(node in cached for ids in batches for node in ids)
    assert int(made.hits(torch.tensor(ranking))[rows]) == asked


@given(batches=batches, ranking=st.permutations(range(9)))
def test_no_ranking_beats_the_optimum_at_any_size(batches, ranking):
    made = trace(batches, 9)
    assert bool((made.hits(made.optimal) >= made.hits(torch.tensor(ranking))).all())
