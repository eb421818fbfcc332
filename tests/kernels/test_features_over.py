"""Gather over a cache on a CPU: rows of the cache and of the table, hits, and remembered slots."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from ops_threads import threads

from gnnbench.core.errors import UsageError
from gnnbench.kernels.features import gather_over_out

NODES = 900
SHARED = torch.zeros(3, 2)


def entries(nodes=NODES):
    return [torch.zeros(nodes, dtype=torch.int32) for _ in range(2)]


def test_rows_hits_and_slots_by_hand():
    """The cache has nodes 2 and 4 in rows 1 and 0; node 3 belongs to an earlier generation."""
    table = torch.arange(6.0)[:, None].repeat(1, 3)
    cached = torch.tensor([[40.0] * 3, [20.0] * 3])  # different from the rows of the table
    slots, generations = entries(6)
    slots[[2, 4, 3]] = torch.tensor([1, 0, 0], dtype=torch.int32)
    generations[[2, 4, 3]] = torch.tensor([7, 7, 6], dtype=torch.int32)
    out = torch.full((4, 3), -1.0)
    ids = torch.tensor([4, 3, 0, 2])
    assert gather_over_out(table, cached, slots, generations, 7, ids, out) == 2
    assert out[:, 0].tolist() == [40, 3, 0, 20]
    assert generations.tolist() == [0, 0, 7, 6, 7, 0] and slots.tolist() == [0, 0, 1, 0, 0, 0]
    assert gather_over_out(table, cached, slots, generations, 7, ids, out, remember=True) == 2
    assert out[:, 0].tolist() == [40, 3, 0, 20]
    assert generations.tolist() == [8, 0, 8, 8, 8, 0] and slots.tolist() == [2, 0, 3, 1, 0, 0]


@pytest.mark.parametrize("width", [1, 7, 100, 128, 261])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize(("ids_dtype", "count"), [(torch.int32, 1), (torch.int64, 3)])
def test_reuse_of_the_last_batch_for_many_steps(width, dtype, ids_dtype, count):
    """Rows, hits and remembered slots of each step; rows in the cache have changed values."""
    random = torch.Generator().manual_seed(1)
    table = torch.randint(0, 1000, (NODES, width), generator=random).to(dtype)
    slots, generations = entries()
    cached, last = table[:0], {}
    with threads(count):
        for generation in range(1, 21):
            n = int(torch.randint(0, NODES, (1,), generator=random))
            ids = torch.randperm(NODES, generator=random)[:n]
            out = torch.empty(n, width, dtype=dtype)
            hits = gather_over_out(
                table, cached, slots, generations, generation, ids.to(ids_dtype), out, remember=True
            )
            expected = table[ids].clone()
            for place, node in enumerate(ids.tolist()):
                if node in last:
                    expected[place] = cached[last[node]]
            assert hits == len(last.keys() & set(ids.tolist()))
            assert torch.equal(out, expected)
            assert torch.equal(slots[ids], torch.arange(n, dtype=torch.int32))
            assert int((generations == generation + 1).sum()) == n
            cached, last = out + 1, {node: place for place, node in enumerate(ids.tolist())}


@given(st.integers(1, 400), st.integers(0, 70), st.integers(0, 3000), st.integers(0, 400))
def test_cache_rows_with_repeated_ids(rows, dim, n, size):
    random = torch.Generator().manual_seed(rows)
    table = torch.randn(rows, dim, generator=random)
    hot = torch.randperm(rows, generator=random)[:size]
    cached = -table[hot] - 1
    slots, generations = entries(rows)
    slots[hot], generations[hot] = torch.arange(hot.numel(), dtype=torch.int32), 1
    ids, out = torch.randint(0, rows, (n,), generator=random), torch.empty(n, dim)
    known = generations[ids] == 1
    assert gather_over_out(table, cached, slots, generations, 1, ids, out) == int(known.sum())
    assert torch.equal(out[~known], table[ids[~known]])
    assert torch.equal(out[known], -table[ids[known]] - 1)


def test_slot_beyond_the_cache_is_a_miss():
    """The row then comes from the table."""
    table, (slots, generations) = torch.arange(8.0).view(4, 2), entries(4)
    slots[:], generations[:] = torch.tensor([0, 1, -1, 2**31 - 1]), 1
    out = torch.empty(4, 2)
    ids = torch.arange(4)
    assert gather_over_out(table, table[:1] + 50, slots, generations, 1, ids, out) == 1
    assert out.tolist() == [[50, 51], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": torch.tensor([0, 4])}, "ids holds 4 at position 1, the table has the rows 0 to 3"),
        ({"ids": torch.tensor([-1, 0])}, "ids holds -1 at position 0"),
        ({"kept": torch.zeros(1, 3)}, "kept must have rows of the table's shape"),
        ({"kept": torch.zeros(1, 2).int()}, "kept must be float32"),
        (
            {
                "table": torch.zeros(4, 2, 3),
                "out": torch.zeros(2, 2, 3),
                "kept": torch.zeros(1, 3, 2),
            },
            "kept must have rows of the table's shape",
        ),
        ({"kept": SHARED[1:], "out": SHARED[:2]}, "out must not share memory with kept"),
        ({"kept": SHARED[:2], "out": SHARED[:2]}, "out must not share memory with kept"),
        ({"generation": -1}, "generation is -1, it must be at least 0"),
        ({"generation": 2**31 - 1}, "generation is 2147483647"),
        ({"generation": 2**32 + 1}, "generation is 4294967297"),
        ({"slots": torch.zeros(3).int()}, "slots must have one entry for each of the table's rows"),
        ({"generations": torch.zeros(4)}, "generations must be int32"),
        ({"out": torch.zeros(1, 2)}, "out must have one row"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    slots, generations = entries(4)
    arguments = {
        "table": torch.zeros(4, 2), "kept": torch.zeros(1, 2), "slots": slots,
        "generations": generations, "generation": 1, "ids": torch.tensor([1, 0]),
        "out": torch.zeros(2, 2), **change,
    }  # fmt: skip
    with pytest.raises(UsageError, match=message):
        gather_over_out(**arguments)


def test_adjacent_memory_does_not_count_as_overlap():
    table, (slots, generations) = torch.arange(8.0).view(4, 2), entries(4)
    both = torch.zeros(4, 2)
    assert (
        gather_over_out(table, both[:2], slots, generations, 1, torch.tensor([1, 3]), both[2:]) == 0
    )
    assert both[2:].tolist() == [[2, 3], [6, 7]]
    assert gather_over_out(table, both[1:1], slots, generations, 1, torch.arange(4), both) == 0
