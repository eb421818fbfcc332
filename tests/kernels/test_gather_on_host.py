"""Rows gathered to places by the CUDA kernel, on the host (native/tests/cuda_on_host)."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from ops_on_host import on_host, pointer

ROWS, EMPTY = 60, 99


@pytest.fixture(scope="module")
def kernels() -> Any:
    return on_host("features", "gather", "gather")


@pytest.mark.parametrize("row_bytes", [1, 6, 16, 100, 128, 400, 1028])
@pytest.mark.parametrize(("n", "blocks"), [(0, 0), (7, 0), (300, 0), (300, 1), (300, 2)])
@pytest.mark.parametrize("aligned", [False, True])
def test_each_row_is_at_its_place(
    kernels: Any, row_bytes: int, n: int, blocks: int, aligned: bool
) -> None:
    draws = torch.Generator().manual_seed(row_bytes + n)
    table = torch.randint(0, 90, (ROWS, row_bytes), dtype=torch.uint8, generator=draws)
    for dtype in (torch.int32, torch.int64):
        ids = torch.randint(0, ROWS, (n,), generator=draws).to(dtype)
        places = torch.randperm(n + 5, generator=draws)[:n].int()
        out = torch.full((n + 5, row_bytes), EMPTY, dtype=torch.uint8)
        kernels.gather_to(
            pointer(table), ctypes.c_int64(ROWS), pointer(ids), ctypes.c_int(dtype is torch.int64),
            ctypes.c_int64(n), ctypes.c_int64(row_bytes), pointer(places), ctypes.c_int64(n + 5),
            pointer(out), ctypes.c_int64(blocks), ctypes.c_int(aligned),
        )  # fmt: skip
        expected = torch.full_like(out, EMPTY)
        expected[places.long()] = table[ids.long()]
        assert torch.equal(out, expected)
