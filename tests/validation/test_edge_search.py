"""Lookup of edges in rows, compared with counting."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.validation import edges
from gnnbench.validation.edges import Edges


def graph(rows, dtype=torch.int32):
    lengths = torch.tensor([0, *(len(row) for row in rows)])
    return SimpleNamespace(
        indptr=lengths.cumsum(0),
        indices=torch.tensor([n for row in rows for n in row], dtype=dtype),
    )


# 0 <- 1, 2, 2, 5; 1 has no neighbour; 2 <- 0, 0; 3 <- 3; 4 and 5 have none.
ROWS = [[1, 2, 2, 5], [], [0, 0], [3], [], []]


def times(searched, *pairs):
    dst, src = torch.tensor(pairs).T
    return searched.times(dst, src).tolist()


@pytest.mark.parametrize("rows", [ROWS, [row[::-1] for row in ROWS]])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_parallel_edges_are_counted(rows, dtype):
    searched = Edges(graph(rows, dtype))
    pairs = (0, 1), (0, 2), (0, 5), (0, 0), (0, 3), (1, 1), (2, 0), (3, 3), (5, 0), (5, 5)
    assert times(searched, *pairs) == [1, 2, 1, 0, 0, 0, 2, 1, 0, 0]


@pytest.mark.parametrize("reversed_rows", [False, True])
def test_edges_without_weight_are_not_counted(reversed_rows):
    rows, weight = ROWS, [1, 0, 1, 0, 1, 1, 0]
    if reversed_rows:
        rows, weight = [row[::-1] for row in ROWS], [0, 1, 0, 1, 1, 1, 0]
    searched = Edges(graph(rows), torch.tensor(weight, dtype=torch.bool))
    assert times(searched, (0, 1), (0, 2), (0, 5), (2, 0), (3, 3)) == [1, 1, 0, 2, 0]


def test_graph_without_edges_and_empty_queries():
    none = Edges(graph([[], []]))
    assert times(none, (0, 1), (1, 0)) == [0, 0]
    assert Edges(graph(ROWS)).times(*torch.empty(2, 0, dtype=torch.int64)).tolist() == []


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=10, max_size=10),
    st.integers(1, 12), st.booleans(),
)  # fmt: skip
def test_every_pair_in_chunks_of_any_size(rows, chunk, in_order):
    rows = [sorted(row) for row in rows] if in_order else rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "CHUNK", chunk)
        searched = Edges(graph(rows))
    pairs = [(v, u) for v in range(10) for u in range(10)]
    assert times(searched, *pairs) == [rows[v].count(u) for v, u in pairs]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=2, max_size=10), st.integers(1, 9)
)
def test_only_rows_out_of_order_are_copied(rows, chunk):
    one = graph(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "CHUNK", chunk)
        own = edges._in_order(one.indptr, one.indices)
    assert own == all(row == sorted(row) for row in rows)
