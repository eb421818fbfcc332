"""SIEVE against the paper's own loop, one request after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.cache import sieve
from gnnbench.cache.sieve import sieve_hits
from gnnbench.errors import UsageError


def as_printed(batches, capacity):
    """Algorithm 1 of the paper on a list from tail to head; a batch's lookups come first."""
    queue, visited, hand, hits = [], {}, None, 0
    for batch in batches:
        missed = [node for node in batch if node not in visited]
        for node in batch:
            if node in visited:
                visited[node] = True
                hits += 1
        for node in missed if capacity else []:
            if len(queue) == capacity:
                at = queue.index(hand) if hand is not None else 0
                while visited[queue[at]]:
                    visited[queue[at]] = False
                    at = (at + 1) % len(queue)
                hand = queue[at + 1] if at + 1 < len(queue) else None
                del visited[queue[at]]
                del queue[at]
            queue.append(node)
            visited[node] = False
    return hits


def arrays(batches):
    return [np.array(batch, dtype=np.int64) for batch in batches]


def test_a_run_by_hand():
    assert sieve_hits(arrays([[0, 1]]), 4, 2) == 0
    assert sieve_hits(arrays([[0, 1], [0, 2]]), 4, 2) == 1
    # 0 was visited, so 1 went; a first-in first-out queue would have lost 0 here.
    assert sieve_hits(arrays([[0, 1], [0, 2], [0, 2]]), 4, 2) == 3
    assert sieve_hits(arrays([[0, 1], [0, 2], [1]]), 4, 2) == 1


def test_no_room_hits_nothing_and_room_for_all_misses_once():
    batches = arrays([[0, 1, 2], [2, 0], [1]])
    assert sieve_hits(batches, 3, 0) == 0
    assert sieve_hits(batches, 3, 3) == 3


def test_a_node_twice_in_a_batch_is_refused():
    with pytest.raises(UsageError, match="holds a node twice"):
        sieve_hits(arrays([[1, 1]]), 2, 1)


@pytest.mark.parametrize("look", [1, 3, sieve.LOOK])
@given(
    batches=st.lists(st.lists(st.integers(0, 11), unique=True, max_size=9), max_size=25),
    capacity=st.integers(0, 12),
)
def test_hits_are_those_of_the_loop_as_printed(look, batches, capacity):
    before, sieve.LOOK = sieve.LOOK, look
    try:
        assert sieve_hits(arrays(batches), 12, capacity) == as_printed(batches, capacity)
    finally:
        sieve.LOOK = before
