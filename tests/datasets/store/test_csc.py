"""Building CSC, compared with hand-written results and multisets of pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.datasets.store import csc


def build(src, dst, num_nodes: int, *, merge: bool, per_pass: int = 1 << 20, both: bool = False):
    src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)

    def chunks():
        for start in range(0, len(src), 3):
            yield src[start : start + 3], dst[start : start + 3]

    degrees = np.zeros(num_nodes, np.int64)
    source = csc.both_directions(chunks) if both else chunks
    rows = list(csc.build_rows(source, num_nodes, degrees, merge=merge, edges_per_pass=per_pass))
    indices = np.concatenate(rows) if rows else np.empty(0, np.int32)
    return csc.indptr_of(degrees), indices


def pairs(indptr: np.ndarray, indices: np.ndarray) -> Counter:
    dst = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return Counter(zip(indices.tolist(), dst.tolist(), strict=True))


def test_symmetric_csc_of_a_small_graph() -> None:
    # 1 -> 0, 0 -> 1, 2 -> 1 twice, 3 -> 3, 4 isolated
    indptr, indices = build([1, 0, 2, 2, 3], [0, 1, 1, 1, 3], 5, merge=True, both=True)
    assert indptr.tolist() == [0, 1, 3, 4, 5, 5]
    assert indices.tolist() == [1, 0, 2, 1, 3]
    assert indices.dtype == np.int32


def test_parallel_edges_stay_without_merge() -> None:
    indptr, indices = build([1, 0, 2, 2, 3], [0, 1, 1, 1, 3], 5, merge=False)
    assert indptr.tolist() == [0, 1, 4, 4, 5, 5]
    assert indices.tolist() == [1, 0, 2, 2, 3]


EDGES = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=60),
    )
)


@given(EDGES, st.booleans(), st.booleans(), st.integers(1, 20))
def test_csc_equals_multiset_of_pairs(graph, merge: bool, both: bool, per_pass: int) -> None:
    num_nodes, edges = graph
    src, dst = zip(*edges, strict=True) if edges else ((), ())
    expected = Counter(edges)
    if both:
        expected += Counter((v, u) for u, v in edges if u != v)
    if merge:
        expected = Counter(set(expected))
    indptr, indices = build(src, dst, num_nodes, merge=merge, per_pass=per_pass, both=both)
    assert pairs(indptr, indices) == expected
    for v in range(num_nodes):
        row = indices[indptr[v] : indptr[v + 1]]
        assert (np.diff(row) >= 0).all()
    if both and merge:
        assert csc.is_symmetric(indptr, indices)


@given(EDGES)
def test_is_symmetric_means_equal_to_its_reverse(graph) -> None:
    num_nodes, edges = graph
    src, dst = zip(*edges, strict=True) if edges else ((), ())
    indptr, indices = build(src, dst, num_nodes, merge=False)
    assert csc.is_symmetric(indptr, indices) == (
        Counter(edges) == Counter((v, u) for u, v in edges)
    )


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_csc_edges_do_not_depend_on_the_chunk_size(
    monkeypatch: pytest.MonkeyPatch, arrays, step: int
) -> None:
    monkeypatch.setattr(csc, "_EDGES_PER_CHUNK", step)
    edges = [
        (int(u), int(v))
        for src, dst in csc.csc_edges(arrays["indptr"], arrays["indices"])()
        for u, v in zip(src, dst, strict=True)
    ]
    assert edges == [(1, 0), (2, 0), (1, 1), (4, 1), (4, 1), (0, 2), (3, 4)]


def test_ids_are_int32_wherever_they_fit() -> None:
    assert csc.index_dtype(2**31 - 1) == "int32"
    assert csc.index_dtype(2**31) == "int64"
