"""Sets of ids: by hand, compared with Python sets, and bad arguments."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnbench.core.errors import UsageError
from gnnbench.kernels.id_set import union_ids
from gnnbench.kernels.reference import id_set as reference


def ids(*batches, dtype=torch.int32):
    return [torch.tensor(batch, dtype=dtype) for batch in batches]


def bits(*places):
    return sum(1 << place for place in places)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_union_by_hand(dtype):
    batches = ids([40, 3, 95], [3, 0], [], [95, 41, 3], dtype=dtype)
    union = union_ids(batches, 100)
    assert union.ids.dtype is dtype and union.ids.tolist() == [0, 3, 40, 41, 95]
    assert union.words.dtype is torch.int32
    top = bits(31) - (1 << 32)  # id 95 is the last of its word: the sign of an int32
    assert union.words.tolist() == [[bits(0, 3), 0], [bits(8, 9), 2], [top, 4], [0, 5]]
    assert union.nbytes == 5 * dtype.itemsize + 32
    shared = union_ids(batches, 100, shared=True)
    assert shared.ids.tolist() == [3, 95]
    assert shared.words.tolist() == [[bits(3), 0], [0, 1], [top, 1], [0, 2]]


def test_rows_of_a_batch_by_hand():
    union = union_ids(ids([40, 3, 95], [0]), 100)
    rows = torch.tensor([[0.0, 0.5], [3, 3.5], [40, 40.5], [95, 95.5]])
    for dtype in (torch.int32, torch.int64):
        actual = union.gather(rows, torch.tensor([95, 0, 95, 40], dtype=dtype))
        assert actual.tolist() == [[95, 95.5], [0, 0.5], [95, 95.5], [40, 40.5]]


def test_ones_by_hand():
    """Two pieces of two positions each, from position 1 on; other values are kept."""
    batches = ids([7, 1, 5], [9, 7, 200, 3])
    union = union_ids([*batches, torch.tensor([2], dtype=torch.int32)], 300)
    assert union.ids.tolist() == [1, 2, 3, 5, 7, 9, 200]
    out = torch.zeros(2, 2, 2, dtype=torch.float16)
    out[0, 0, 0] = 4
    assert union.ones(batches, 1, out) is out
    # positions 1, 2 | 3, 4: ids 2, 3 | 5, 7
    assert out.tolist() == [[[4, 0], [0, 1]], [[1, 1], [0, 1]]]


def test_empty_sets_have_no_ids():
    none = union_ids(ids([], []), 70)
    assert none.ids.tolist() == [] and none.words.tolist() == [[0, 0]] * 3
    assert none.gather(torch.empty(0, 4), torch.empty(0, dtype=torch.int64)).shape == (0, 4)
    empty = union_ids(ids([]), 0)
    assert empty.ids.numel() == 0 and empty.words.shape == (0, 2)
    one = union_ids(ids([0]), 1)
    assert one.ids.tolist() == [0] and one.words.tolist() == [[1, 0]]
    assert one.gather(torch.ones(1, 0), torch.tensor([0, 0])).shape == (2, 0)


@given(
    st.integers(1, 200).flatmap(
        lambda nodes: st.tuples(
            st.just(nodes),
            st.lists(st.lists(st.integers(0, nodes - 1), max_size=70), min_size=1, max_size=6),
        )
    ),
    st.booleans(),
    st.sampled_from([torch.int32, torch.int64]),
    st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 9)),
)
@settings(max_examples=150)
def test_union_equals_python_sets(drawn, shared, dtype, tile):
    nodes, batches = drawn
    batches = ids(*batches, dtype=dtype)
    actual = union_ids(batches, nodes, shared)
    expected, words = reference.union_ids(batches, nodes, shared)
    assert actual.ids.tolist() == expected
    assert [word % (1 << 32) for word in actual.words.flatten().tolist()] == words
    first, pieces, width = tile
    shape = (pieces, len(batches), width)
    ones = actual.ones(batches, first, torch.zeros(*shape, dtype=torch.float16))
    assert torch.equal(ones, reference.ones(expected, batches, first, shape))
    if not shared:
        rows = torch.arange(len(expected) * 3, dtype=torch.int16).view(-1, 3)
        for batch in batches:
            places = [expected.index(i) for i in batch.tolist()]
            assert torch.equal(actual.gather(rows, batch), rows[places])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_many_ids_on_all_threads(dtype):
    """More than one chunk of ids and of words; each id occurs in several batches."""
    generator = torch.Generator().manual_seed(4)
    batches = [torch.randperm(1_000_003, generator=generator)[:200_000].to(dtype) for _ in range(4)]
    union = union_ids(batches, 1_000_003)
    expected, times = torch.cat(batches).unique(return_counts=True)
    assert torch.equal(union.ids, expected)
    assert torch.equal(union_ids(batches, 1_000_003, shared=True).ids, expected[times > 1])
    assert torch.equal(union.gather(expected, batches[2]), batches[2])


def test_bad_arguments_are_refused():
    union = union_ids(ids([1, 5]), 40)
    rows = torch.zeros(2, 3)
    with pytest.raises(UsageError, match="batches is empty"):
        union_ids([], 40)
    with pytest.raises(UsageError, match="batches must be int32 or int64, it is float32"):
        union_ids([torch.zeros(2)], 40)
    with pytest.raises(UsageError, match="batches must be int32, it is int64"):
        union_ids([*ids([1]), *ids([2], dtype=torch.int64)], 40)
    with pytest.raises(UsageError, match="batches must have 1 dimension"):
        union_ids([torch.zeros(2, 2, dtype=torch.int32)], 40)
    with pytest.raises(UsageError, match="num_nodes must be 0 to 1099511627776, it is -1"):
        union_ids(ids([1]), -1)
    for wrong in (-1, 40):
        with pytest.raises(UsageError, match=f"batches holds {wrong} at position 1, .* 0 to 39"):
            union_ids(ids([0], [1, wrong]), 40)
    for wrong in (-1, 2, 64, 2**31 - 1):
        with pytest.raises(UsageError, match=f"ids holds {wrong} at position 1, .* no row"):
            union.gather(rows, torch.tensor([5, wrong]))
    with pytest.raises(UsageError, match=r"ids holds 5 at position 0, .* no row"):
        union.gather(rows[:1], torch.tensor([5]))
    with pytest.raises(UsageError, match="rows must be contiguous"):
        union.gather(torch.zeros(3, 2).t(), torch.tensor([1]))
    with pytest.raises(UsageError, match=r"rows must have rows of at most 2\^30 bytes"):
        union.gather(torch.empty(0, 2**29), torch.tensor([1]))
    with pytest.raises(UsageError, match="ones must be float16, it is float32"):
        union.ones(ids([1]), 0, torch.zeros(1, 1, 4))
    with pytest.raises(UsageError, match="ones must have a row for each of the 1 batches"):
        union.ones(ids([1]), 0, torch.zeros(1, 2, 4, dtype=torch.float16))
    with pytest.raises(UsageError, match="first must be at least 0"):
        union.ones(ids([1]), -1, torch.zeros(1, 1, 4, dtype=torch.float16))
