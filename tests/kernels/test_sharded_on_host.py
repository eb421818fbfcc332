"""The kernel of the sharded gather on the host, thread by thread (native/tests/cuda_on_host)."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from ops_on_host import on_host
from torch import Tensor

NODES = 41
NOWHERE = -1  # kNowhere, as int64


@pytest.fixture(scope="module")
def kernels() -> Any:
    return on_host("features", "features", "sharded")


def table_of(row_bytes: int) -> Tensor:
    draws = torch.Generator().manual_seed(row_bytes)
    return torch.randint(0, 256, (NODES, row_bytes), dtype=torch.uint8, generator=draws)


def pointer(t: Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if t is None else t.data_ptr())


def read(
    kernels: Any,
    shards: list[Tensor],
    own: int,
    places: Tensor | None,
    host: Tensor | None,
    ids: Tensor,
    keys: Tensor | None = None,
    blocks: int = 0,
    depth: int = 1,
) -> tuple[Tensor, list[int]]:
    row_bytes = shards[0].shape[1]
    out = torch.full((ids.numel(), row_bytes), 99, dtype=torch.uint8)
    counts = torch.zeros(3, dtype=torch.int64)
    addresses = (ctypes.c_void_p * len(shards))(*(s.data_ptr() for s in shards))
    number, whole = ctypes.c_int, ctypes.c_int64
    num_rows = sum(s.shape[0] for s in shards)
    nodes = num_rows if places is None else places.numel()
    kernels.sharded(
        addresses, number(len(shards)), number(own), whole(num_rows), pointer(places),
        pointer(host), pointer(ids), number(ids.dtype is torch.int64), whole(ids.numel()),
        whole(nodes), whole(row_bytes), pointer(keys), pointer(counts), number(blocks),
        number(depth), pointer(out),
    )  # fmt: skip
    return out, counts.tolist()


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("blocks", [0, 1])
@pytest.mark.parametrize("row_bytes", [1, 2, 12, 16, 200, 512, 516])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_rows_of_all_shards_are_read_and_counted(
    kernels: Any, ranks: int, row_bytes: int, blocks: int, depth: int
):
    table = table_of(row_bytes)
    shards = [table[r::ranks].contiguous() for r in range(ranks)]
    ids = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))[:37]
    ids = ids.int() if ranks % 2 else ids
    own = ranks - 1
    rows, counts = read(kernels, shards, own, None, None, ids, blocks=blocks, depth=depth)
    assert torch.equal(rows, table[ids.long()])
    mine = int((ids % ranks == own).sum())
    assert counts == [mine, 37 - mine, 0]


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("ratio", [0, 1, 7, NODES])
@pytest.mark.parametrize("keyed", [False, True])
def test_rows_outside_all_shards_come_from_the_host_or_stay_unset(
    kernels: Any, keyed: bool, ratio: int, depth: int
):
    table, ranks = table_of(24), 3
    cached = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))[:ratio]
    places = torch.full((NODES,), -1, dtype=torch.int32)
    places[cached] = torch.arange(ratio, dtype=torch.int32)
    shards = [table[cached[r::ranks]].contiguous() for r in range(ranks)]  # some are empty
    ids = torch.arange(NODES - 1, -1, -1)
    keys = torch.full((NODES,), 5, dtype=torch.int64) if keyed else None
    rows, counts = read(kernels, shards, 1, places, table, ids, keys, depth=depth)
    known = places[ids] >= 0
    mine = int((places[ids] % ranks == 1)[known].sum())
    assert counts == [mine, ratio - mine, NODES - ratio]
    if keys is None:
        assert torch.equal(rows, table[ids])
        return
    assert torch.equal(rows[known], table[ids[known]]) and bool((rows[~known] == 99).all())
    assert torch.equal(keys, torch.where(known, NOWHERE, (ids << 32) | torch.arange(NODES)))


def test_empty_ids_and_empty_rows_are_counted(kernels: Any):
    table = table_of(16)
    assert read(kernels, [table], 0, None, None, torch.arange(0))[1] == [0, 0, 0]
    assert read(kernels, [table[:, :0]], 0, None, None, torch.arange(5))[1] == [5, 0, 0]
