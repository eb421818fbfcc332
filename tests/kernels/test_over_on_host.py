"""Rows of the last batch and of a cache, in one kernel on the host (native/tests/cuda_on_host)."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from ops_on_host import on_host
from torch import Tensor

from gnnbench.kernels.lookup import IdLookup

NODES = 60
NOWHERE = -1  # kNowhere, as int64

Level = tuple[Tensor, IdLookup]


@pytest.fixture(scope="module")
def kernels() -> Any:
    return on_host("features", "over", "over")


def table_of(row_bytes: int) -> Tensor:
    draws = torch.Generator().manual_seed(row_bytes)
    return torch.randint(0, 256, (NODES, row_bytes), dtype=torch.uint8, generator=draws)


def level(table: Tensor, ids: Tensor) -> Level:
    lookup = IdLookup(NODES)
    lookup.remember(ids)
    return table[ids].contiguous(), lookup


def gather_kept(
    kernels: Any, levels: list[Level], ids: Tensor, remember: bool
) -> tuple[Tensor, Tensor, list[int]]:
    """Rows (99 where a row is missing), keys and hits."""
    row_bytes, n = levels[0][0].shape[1], ids.numel()
    out = torch.full((n, row_bytes), 99, dtype=torch.uint8)
    keys, hits = torch.full((n,), 5), torch.zeros(len(levels), dtype=torch.int64)
    numbers = [
        x for rows, known in levels
        for x in (rows.data_ptr(), rows.shape[0], known.slots.data_ptr(),
                  known.generations.data_ptr(), known.generation)
    ]  # fmt: skip
    kernels.over(
        (ctypes.c_int64 * len(numbers))(*numbers), ctypes.c_int(len(levels)),
        ctypes.c_int(remember), ctypes.c_void_p(ids.data_ptr()),
        ctypes.c_int(ids.dtype is torch.int64), ctypes.c_int64(n), ctypes.c_int64(NODES),
        ctypes.c_int64(row_bytes), ctypes.c_void_p(keys.data_ptr()),
        ctypes.c_void_p(hits.data_ptr()), ctypes.c_void_p(out.data_ptr()),
    )  # fmt: skip
    return out, keys, hits.tolist()


def key(ids: Tensor) -> Tensor:
    return (ids.long() << 32) | torch.arange(ids.numel())


def test_each_row_comes_from_the_first_level_that_has_it(kernels: Any):
    """Node 3 is in both levels, whose rows differ here: the last batch's is taken."""
    table = table_of(8)
    last, cached = torch.tensor([7, 3]), torch.tensor([3, 9, 1])
    levels = [level(table, last), level(table, cached)]
    levels[0][0].fill_(11)
    ids = torch.tensor([3, 4, 9, 7, 0], dtype=torch.int32)
    rows, keys, hits = gather_kept(kernels, levels, ids, remember=False)
    assert hits == [2, 1]
    assert rows[:, 0].tolist() == [11, 99, int(table[9, 0]), 11, 99]
    assert torch.equal(rows[2], table[9])
    nowhere = torch.tensor([True, False, True, True, False])
    assert torch.equal(keys, key(ids).where(~nowhere, NOWHERE))


@pytest.mark.parametrize("row_bytes", [0, 1, 6, 16, 200, 512, 516])
@pytest.mark.parametrize("cached", [0, 4, 30, NODES])
@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
def test_batches_over_a_cache(kernels: Any, ids_dtype: torch.dtype, cached: int, row_bytes: int):
    """Hits, misses and remembered slots of a sequence of batches."""
    table, draws = table_of(row_bytes), torch.Generator().manual_seed(cached)
    in_cache = torch.randperm(NODES, generator=draws)[:cached]
    cache = level(table, in_cache)
    slots, generations = cache[1].slots.clone(), cache[1].generations.clone()
    rows, known = table[:0], IdLookup(NODES)
    previous: set[int] = set()
    for n in (37, 60, 0, 41, 1):
        ids = torch.randperm(NODES, generator=draws)[:n].to(ids_dtype)
        some = set(ids.tolist())
        found = [(rows, known), cache]
        out, keys, hits = gather_kept(kernels, found, ids, remember=True)
        known.remembered()
        reused = some & previous
        assert hits == [len(reused), len((some - previous) & set(in_cache.tolist()))]
        miss = torch.tensor([i not in previous and i not in set(in_cache.tolist())
                             for i in ids.tolist()], dtype=torch.bool)  # fmt: skip
        assert torch.equal(keys, torch.where(miss, key(ids), NOWHERE))
        out[miss] = table[ids[miss].long()]  # as the read of the keys does
        assert torch.equal(out, table[ids.long()])
        assert torch.equal(known.find(ids), torch.arange(n, dtype=torch.int32))
        rows, previous = out, some
    assert torch.equal(cache[1].slots, slots) and torch.equal(cache[1].generations, generations)


def test_one_level_is_the_gather_over_kept_rows(kernels: Any):
    table, ids = table_of(12), torch.arange(20)
    rows, keys, hits = gather_kept(kernels, [level(table, ids[5:9])], ids, remember=False)
    assert hits == [4] and torch.equal(rows[5:9], table[5:9])
    assert torch.equal(keys[5:9], torch.full((4,), NOWHERE)) and torch.equal(
        keys[:5], ids[:5] << 32 | ids[:5]
    )
