"""SIEVE's queue compared with the paper's loop over single requests."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.core.errors import UsageError
from gnnbench.features.policies.sieve import Sieve, in_order, sieve_hits
from gnnbench.kernels.reference import sieve as reference
from gnnbench.kernels.sieve import sieve_insert


def ids(batch):
    return torch.tensor(batch, dtype=torch.int64)


def hits(batches, num_nodes, capacity):
    return sieve_hits([ids(batch) for batch in batches], num_nodes, capacity)


def queue_of(sieve):
    """Nodes from the oldest to the newest, following the links."""
    slot, nodes = int(sieve.state[1]), []
    while slot >= 0:
        nodes.append(int(sieve.nodes[slot]))
        slot = int(sieve.newer[slot])
    return nodes


def test_hits_of_a_small_sequence():
    assert hits([[0, 1]], 4, 2) == [0]
    assert hits([[0, 1], [0, 2]], 4, 2) == [0, 1]
    # 0 was visited, so 1 is evicted; a FIFO queue would have evicted 0.
    assert hits([[0, 1], [0, 2], [0, 2]], 4, 2) == [0, 1, 2]
    assert hits([[0, 1], [0, 2], [1]], 4, 2) == [0, 1, 0]


def test_slots_of_a_small_sequence():
    cache = Sieve(3)
    slots, evicted = cache.insert(ids([7, 5]))
    assert slots.dtype is torch.int32 and evicted.dtype is torch.int64
    assert (slots.tolist(), evicted.tolist(), queue_of(cache)) == ([0, 1], [], [7, 5])
    cache.mark(torch.tensor([0], dtype=torch.int32))
    # 9 takes the free slot, 8 the slot of 5, as 7 was visited; then the slot of 9, and so on.
    slots, evicted = cache.insert(ids([9, 8]))
    assert (slots.tolist(), evicted.tolist(), queue_of(cache)) == ([2, 1], [5], [7, 9, 8])
    slots, evicted = cache.insert(ids([1, 2, 3]))
    assert evicted.tolist() == [9, 8, 1]  # 1 was evicted for 3 in the same call
    assert (slots.tolist(), queue_of(cache)) == ([-1, 1, 2], [7, 2, 3])
    assert cache.nodes.tolist() == [7, 2, 3] and not cache.visited.any()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_in_order_sorts_and_deduplicates(dtype):
    ordered = in_order(torch.tensor([7, 2, 7, 9, 2], dtype=dtype))
    assert ordered.dtype is dtype and ordered.tolist() == [2, 7, 9]
    assert in_order(torch.empty(0, dtype=dtype)).tolist() == []


def test_hits_of_empty_and_full_size_caches():
    batches = [[0, 1, 2], [2, 0], [1]]
    assert hits(batches, 3, 0) == [0, 0, 0]
    assert hits(batches, 3, 3) == [0, 2, 1]


@given(
    batches=st.lists(st.lists(st.integers(0, 11), unique=True, max_size=9), max_size=25),
    capacity=st.integers(0, 12),
)
def test_sieve_equals_the_papers_loop(batches, capacity):
    """Compares hits of every batch, and the queue after it."""
    assert hits(batches, 12, capacity) == reference.sieve_hits(batches, capacity)
    printed, cache, where = reference.Sieve(capacity), Sieve(capacity), {}
    for batch in batches:
        missed = [node for node in batch if node not in where]
        cache.mark(torch.tensor([where[n] for n in batch if n in where], dtype=torch.int32))
        slots, evicted = cache.insert(ids(missed))
        where = {n: s for n, s in where.items() if n not in evicted.tolist()}
        where |= {n: s for n, s in zip(missed, slots.tolist(), strict=True) if s >= 0}
        assert printed.batch(batch) == len(batch) - len(missed)
        assert queue_of(cache) == printed.queue
        assert where == {int(cache.nodes[s]): s for s in sorted(where.values())}
        assert set(where) == set(printed.queue)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ids": torch.tensor([1], dtype=torch.int32)}, "ids must be int64, it is int32"),
        ({"newer": torch.zeros(2, dtype=torch.int32)}, "must have one entry per slot"),
        ({"state": torch.zeros(4, dtype=torch.int64)}, "state must have 5 entries, it has 4"),
        ({"state": torch.tensor([0, 3, -1, -1, -1])}, "state is not valid for a queue of 3 slots"),
        ({"state": torch.tensor([3, 0, 2, 0, -1])}, "newer does not link a queue of 3 slots"),
        ({"visited": torch.zeros(3)}, "visited must be uint8, it is float32"),
    ],
)
def test_invalid_queue_is_refused(changed, words):
    cache = Sieve(3)
    cache.newer[:] = 9
    cache.visited[:] = 1
    given = {
        "nodes": cache.nodes, "newer": cache.newer, "visited": cache.visited,
        "state": cache.state, "ids": ids([1]), **changed,
    }  # fmt: skip
    with pytest.raises(UsageError, match=words):
        sieve_insert(**given)
