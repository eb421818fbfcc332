"""Hits of traces, by hand and compared with a cache that is queried node by node."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.features.policies.trace import Trace

BATCHES = [[0, 2], [2, 3], [2, 0, 1]]


def trace(batches, num_nodes=5, dtype=torch.int32):
    return Trace.record(num_nodes, [torch.tensor(ids, dtype=dtype) for ids in batches])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_hits_of_every_size(dtype):
    recorded = trace(BATCHES, dtype=dtype)
    assert recorded.requests == 7
    assert recorded.visits.tolist() == [2, 1, 3, 1, 0]
    assert recorded.optimal.tolist() == [2, 0, 1, 3, 4]
    assert recorded.hits(recorded.optimal).tolist() == [0, 3, 5, 6, 7, 7]
    assert recorded.hits(torch.tensor([4, 3, 1, 0, 2])).tolist() == [0, 0, 1, 2, 4, 7]
    assert recorded.hits_at(recorded.optimal, [0, 0.2, 0.4, 1]) == [0, 3, 5, 7]


def test_sieve_hits():
    # With room for one node: 2 replaces 0 and is hit in the next two batches.
    assert trace([[0], [2], [2], [2]]).sieve_hits([0, 0.2, 1]) == [0, 2, 2]


def test_sieve_starts_from_the_state_after_an_earlier_trace():
    before = trace([[0, 1], [0, 3]])
    assert trace([[2], [1]]).sieve_hits([0.4, 1]) == [0, 0]
    # With room for two, 1 was evicted and 0 and 3 are cached.
    assert trace([[0, 2], [1]]).sieve_hits([0, 0.4, 1], before) == [0, 1, 2]
    assert trace([[0, 3]]).sieve_hits([0.4], before) == [2]


def test_empty_trace_has_no_hits():
    recorded = trace([])
    assert recorded.hits(torch.arange(5)).tolist() == [0] * 6
    assert recorded.hits_at(torch.arange(5), [0, 1]) == recorded.sieve_hits([0, 1]) == [0, 0]


def test_recorded_trace_is_a_copy():
    ids = torch.tensor([1, 2], dtype=torch.int32)
    recorded = Trace.record(5, [ids])
    ids[0] = 4
    assert recorded.batches[0].tolist() == [1, 2]


def test_sieve_depends_on_the_order_of_batches_not_of_nodes():
    one, other = trace([[0, 1], [2, 0], [0, 1]]), trace([[1, 0], [0, 2], [1, 0]])
    assert [b.tolist() for b in one.batches] == [b.tolist() for b in other.batches]
    assert one.sieve_hits([0.4]) == other.sieve_hits([0.4])
    assert one.sieve_hits([0.4]) != trace([[2, 0], [0, 1], [0, 1]]).sieve_hits([0.4])


batches = st.lists(st.lists(st.integers(0, 8), unique=True, max_size=9), max_size=8)


@given(batches=batches, ranking=st.permutations(range(9)), rows=st.integers(0, 9))
def test_hits_equal_those_of_a_set(batches, ranking, rows):
    recorded, cached = trace(batches, 9), set(ranking[:rows])
    expected = sum(node in cached for ids in batches for node in ids)
    assert int(recorded.hits(torch.tensor(ranking))[rows]) == expected


@given(batches=batches, ranking=st.permutations(range(9)))
def test_no_ranking_has_more_hits_than_the_optimal_one(batches, ranking):
    recorded = trace(batches, 9)
    assert bool((recorded.hits(recorded.optimal) >= recorded.hits(torch.tensor(ranking))).all())
