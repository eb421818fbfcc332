"""Overlaps, match degrees and Greedy Reorder: hand-computed values and the reference."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.kernels import match
from gnnbench.kernels.reference import match as reference

# FastGL Fig. 6: the second batch has nodes 0, 3, 4 of the first, and also 10 and 12; the third
# matches the first better.
FIG6 = [[0, 1, 2, 3, 4, 5], [0, 3, 4, 10, 12], [0, 1, 2, 3, 4, 7]]


def ids(batches, dtype=torch.int32):
    return [torch.tensor(batch, dtype=dtype) for batch in batches]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_overlaps_and_degrees_by_hand(dtype):
    batches = ids([[5, 1, 9], [9, 5], [2, 8, 7, 5], [3]], dtype)
    actual = match.overlaps(batches)
    assert actual.dtype is torch.int64
    assert actual.tolist() == [[3, 2, 1, 0], [2, 2, 1, 0], [1, 1, 4, 0], [0, 0, 0, 1]]
    degrees = match.match_degrees(actual)
    third = 1 / 3
    assert degrees.tolist() == [
        [1, 1, third, 0], [1, 1, 0.5, 0], [third, 0.5, 1, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert match.pairs(degrees).tolist() == [1, third, 0, 0.5, 0, 0]


def test_example_of_the_paper():
    degrees = match.match_degrees(match.overlaps(ids(FIG6)))
    assert degrees[0].tolist() == [1, 3 / 5, 5 / 6]
    assert match.greedy_order(degrees) == [0, 2, 1]


def test_no_batches_and_empty_batches_have_no_overlaps():
    assert match.overlaps([]).shape == (0, 0)
    assert match.greedy_order(torch.zeros(0, 0, dtype=torch.float64)) == []
    assert match.overlaps(ids([[4, 2]])).tolist() == [[2]]
    assert match.overlaps(ids([[], [1], []])).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert match.match_degrees(match.overlaps(ids([[], [1]]))).tolist() == [[0, 0], [0, 1]]
    assert match.pairs(torch.ones(1, 1, dtype=torch.float64)).numel() == 0


def test_order_without_overlaps_has_each_batch_once():
    degrees = match.match_degrees(match.overlaps(ids([[0], [1], [2], [3]])))
    assert match.greedy_order(degrees) == [0, 1, 2, 3]
    assert match.greedy_order(degrees, 2) == [2, 0, 1, 3]


def test_greedy_order_prefers_the_earlier_of_equal_matches():
    assert match.greedy_order(torch.ones(4, 4, dtype=torch.float64), 1) == [1, 0, 2, 3]


@given(
    st.lists(st.sets(st.integers(0, 40)), max_size=9),
    st.integers(0, 8),
    st.sampled_from([0, 2**31 - 41]),
)
@settings(max_examples=150)
def test_degrees_and_order_equal_the_reference(sets, start, base):
    batches = ids([[base + i for i in one] for one in sets])
    degrees = match.match_degrees(match.overlaps(batches))
    assert torch.equal(degrees, reference.match_degrees(batches))
    if sets:
        start %= len(sets)
        order = match.greedy_order(degrees, start)
        assert sorted(order) == list(range(len(sets))) and order[0] == start
        assert order == reference.greedy_order(degrees, start)


@pytest.mark.parametrize("how", [match.by_masks, match.by_products], ids=["masks", "products"])
@pytest.mark.parametrize("pieces", [(150, 800, 7, 5000), (1 << 24, 1 << 20, 2048, 1 << 31)])
@pytest.mark.parametrize("most", [300, 1 << 40])
def test_70_batches_in_pieces_of_any_size_equal_sets(how, pieces, most, monkeypatch):
    for name, size in zip(
        ("ONES_AT_ONCE", "RANGE_BYTES", "WIDTH", "TILE_BYTES"), pieces, strict=True
    ):
        monkeypatch.setattr(match, name, size)
    rng = np.random.default_rng(2)
    nodes = rng.choice(most, 300, replace=False) if most == 300 else rng.integers(0, most, 300)
    sets = [rng.choice(nodes, rng.integers(1, 40), replace=False) for _ in range(70)]
    batches = ids(sets, torch.int64)
    sets = [set(one.tolist()) for one in sets]
    actual = how(batches).fill_diagonal_(0)
    expected = [[0 if a is b else len(a & b) for b in sets] for a in sets]
    assert actual.tolist() == expected
    degrees = match.match_degrees(match.overlaps(batches))
    assert torch.equal(degrees, reference.match_degrees(batches))
    assert torch.equal(degrees, degrees.T)


def test_ids_above_32_bits_have_exact_overlaps():
    batches = ids([[2**40, 3], [2**40 + 1, 2**40]], torch.int64)
    assert match.overlaps(batches).tolist() == [[2, 1], [1, 2]]


@pytest.mark.parametrize("how", [match.by_masks, match.by_products], ids=["masks", "products"])
def test_overlaps_above_the_exact_integers_of_float16(how):
    """Batches share more nodes than float16 can count exactly, in several pieces."""
    generator = torch.Generator().manual_seed(3)
    batches = [torch.randperm(9001, generator=generator).int() for _ in range(2)]
    batches.append(batches[0][:4097])
    assert how(batches).tolist() == [[9001, 9001, 4097], [9001, 9001, 4097], [4097, 4097, 4097]]


def test_products_skip_nodes_of_a_single_batch():
    batches = ids([[1, 2, 3], [3, 4], [5]])
    assert match.by_products(batches).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert match.by_products(ids([[1], [2]])).tolist() == [[0, 0], [0, 0]]
