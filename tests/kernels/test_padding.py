"""The layout of blocks padded to one shape. CUDA copy kernels run on the host."""

import ctypes

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from int_tensors import ints
from ops_on_host import on_host

from gnnbench.core.errors import UsageError
from gnnbench.kernels.padding import pad_blocks


def pad_plainly(indptr, indices, labels, room_indptr, room_indices, room_labels):
    """Pad in place with plain Python."""
    room_indptr[: indptr.numel()] = indptr
    room_indices[: indices.numel()] = indices
    rows = room_indptr.numel() - indptr.numel()
    left, edges = room_indices.numel() - indices.numel(), indices.numel()
    each = -(-left // rows) if rows else 0
    for nth in range(rows):
        room_indptr[indptr.numel() + nth] = min(edges + each * (nth + 1), room_indices.numel())
    room_labels[: labels.numel()] = labels
    room_labels[labels.numel() :] = -1


def test_two_layers_by_hand():
    indptrs, indices = [ints(0, 2, 3), ints(0, 1)], [ints(2, 3, 1), ints(1)]
    weights = [torch.tensor([3.0, 1.0, 2.0]), torch.tensor([7.0])]
    indptr_room = [torch.full((6,), 9, dtype=torch.int32), torch.full((3,), 9, dtype=torch.int32)]
    index_room = [torch.full((8,), 9, dtype=torch.int32), torch.full((1,), 9, dtype=torch.int32)]
    weight_room, labels = [torch.ones(8), torch.ones(1)], torch.full((3,), 9)
    pad_blocks(
        indptrs, indices, weights, torch.tensor([4]), indptr_room, index_room, weight_room, labels
    )
    assert indptr_room[0].tolist() == [0, 2, 3, 5, 7, 8]
    assert indptr_room[1].tolist() == [0, 1, 1]  # no edges remain for the next row
    assert index_room[0].tolist() == [2, 3, 1, 9, 9, 9, 9, 9] and index_room[1].tolist() == [1]
    assert weight_room[0].tolist() == [3, 1, 2, 1, 1, 1, 1, 1] and weight_room[1].tolist() == [7]
    assert labels.tolist() == [4, -1, -1]


@st.composite
def batches(draw):
    """Offsets, ids, labels and longer memory for them."""
    rows, behind = draw(st.integers(0, 20)), draw(st.integers(0, 9))
    degrees = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
    edges = sum(degrees)
    more = draw(st.integers(0, 40)) if behind else 0
    seeds, unlabelled = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    indptr = torch.cat([torch.zeros(1), torch.tensor(degrees, dtype=torch.float).cumsum(0)]).int()
    room = [indptr.numel() + behind, edges + more]
    return (
        [indptr, torch.arange(edges, dtype=torch.int32), torch.arange(seeds)],
        [*(torch.full((n,), 77, dtype=torch.int32) for n in room),
         torch.full((seeds + unlabelled,), 77)],
    )  # fmt: skip


@given(batches())
def test_padding_equals_the_plain_implementation(drawn):
    (indptr, indices, labels), room = drawn
    expected = [t.clone() for t in room]
    pad_plainly(indptr, indices, labels, *expected)
    pad_blocks([indptr], [indices], [], labels, [room[0]], [room[1]], [], room[2])
    assert all(map(torch.equal, room, expected))


FITS = {
    "indptrs": [ints(0, 1)], "indices": [ints(0)], "weights": [], "labels": torch.tensor([1]),
    "room_indptrs": [ints(0, 0, 0)], "room_indices": [ints(0, 0)], "room_weights": [],
    "room_labels": torch.tensor([1, 1]),
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong,words",
    [
        ({"indptrs": [ints(0, 1, 1, 1)]}, "indptrs must have at most 3 elements, they have 4"),
        ({"indices": [ints(0, 0, 0)]}, "indices must have at most 2 elements, they have 3"),
        ({"indptrs": [ints(0, 1, 1)]}, "indptrs of the padded batch must have a spare row"),
        (
            {"room_indptrs": []},
            "the padded batch must have offsets and ids for each of the 1 layers",
        ),
        (
            {"weights": [torch.ones(1)]},
            "weights must be given for both the batch and the padded batch",
        ),
        ({"labels": torch.tensor([1.0])}, "labels must be int64, it is float32"),
        ({"indices": [torch.tensor([0])]}, "indices must be int32, it is int64"),
        ({"weights": [torch.ones(2)], "room_weights": [torch.ones(2)]}, "one value per edge"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(wrong, words):
    pad_blocks(*FITS.values())
    with pytest.raises(UsageError, match=words):
        pad_blocks(*(FITS | wrong).values())


@pytest.fixture(scope="module")
def copies():
    return on_host("common", "copies", "copies")


@pytest.mark.parametrize("count", [1, 7, 16, 17, 40])
def test_cuda_copies_and_constants_in_one_launch(copies, count):
    """Any number of copies of any size and alignment; adjacent memory does not change."""
    draw = torch.Generator().manual_seed(count)
    sizes = torch.randint(0, 9000, (count,), generator=draw).tolist()
    sizes[0] = 40_000  # more than one block copies
    target = torch.full((sum(sizes) + 2 * count + 1,), -7, dtype=torch.int32)
    expected, pieces, sources, at = target.clone(), [], [], 1
    for nth, size in enumerate(sizes):
        at += nth % 3  # every alignment
        begin, step, most = 5 - nth, nth % 4, 3 * size // 2
        source = torch.randint(1 << 30, (size + 1,), generator=draw).int()[nth % 2 :][:size]
        sources.append(source)
        numbers = nth % 3 == 1
        to = expected[at : at + size]
        to.copy_((begin + step * torch.arange(size)).clamp(max=most) if numbers else source)
        address = target.data_ptr() + 4 * at
        pieces += [0 if numbers else source.data_ptr(), address, 4 * size, begin, step, most]
        at += size
    given_pieces = torch.tensor(pieces)
    copies.copy_all_of(ctypes.c_void_p(given_pieces.data_ptr()), ctypes.c_int64(count))
    assert torch.equal(target, expected)
