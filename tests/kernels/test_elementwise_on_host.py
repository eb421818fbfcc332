"""PyTorch-Direct's Listing 2 on the host, thread by thread: addresses and gathered rows."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from ops_on_host import on_host, pointer
from torch import Tensor

from gnnbench.harness.reduce.gather_rates import requests_per_row
from gnnbench.kernels.reference.zero_copy import requests

WARP = LINE = 32  # threads; elements of 4 bytes


@pytest.fixture(scope="module")
def kernels() -> Any:
    return on_host("features", "elementwise", "elementwise")


def elements(
    kernels: Any, ids: Tensor, width: int, shifted: bool, narrow: bool = False
) -> tuple[Tensor, Tensor]:
    """The elements that the threads write and read."""
    dst, src = (torch.full((ids.numel() * width,), -1) for _ in range(2))
    kernels.elements_of(
        pointer(ids), ctypes.c_int64(ids.numel()), ctypes.c_int64(width), ctypes.c_int(narrow),
        ctypes.c_int(shifted), pointer(dst), pointer(src),
    )  # fmt: skip
    return dst, src


def lines_per_warp(src: Tensor) -> int:
    """Lines that each warp of consecutive threads reads, summed: its requests."""
    warps = torch.arange(src.numel()) // WARP
    return torch.unique(torch.stack([warps, src // LINE]), dim=1).shape[1]


def test_second_row_of_480_bytes_by_hand(kernels: Any):
    """The paper's example: row 1 begins at element 120, 24 into a line; 8 elements are left."""
    ids = torch.tensor([1])
    dst, src = elements(kernels, ids, 120, shifted=False)
    assert dst.tolist() == list(range(120)) and src.tolist() == list(range(120, 240))
    dst, src = elements(kernels, ids, 120, shifted=True)
    assert src.tolist() == [*range(128, 240), *range(120, 128)]
    assert dst.tolist() == [*range(8, 120), *range(8)]
    assert [lines_per_warp(elements(kernels, ids, 120, s)[1]) for s in (False, True)] == [8, 5]


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("width", [1, 16, 31, 32, 33, 45, 64, 120, 256, 257, 258, 261, 300])
def test_threads_send_the_requests_of_the_model(kernels: Any, width: int, shifted: bool):
    ids = torch.randint(0, 900, (61,), generator=torch.Generator().manual_seed(width))
    dst, src = elements(kernels, ids, width, shifted)
    assert lines_per_warp(src) == requests(ids.numpy(), width, aligned=shifted)
    assert torch.equal(dst.sort().values, torch.arange(61 * width))  # each is written once
    assert torch.equal(src, ids[dst // width] * width + dst % width)
    narrow = elements(kernels, ids, width, shifted, narrow=True)
    assert torch.equal(narrow[0], dst) and torch.equal(narrow[1], src)


def test_requests_per_row_of_480_bytes(kernels: Any):
    """Over random rows, 7.1 requests a row without the shift and 5.3 with it."""
    ids = torch.randint(0, 4096, (2048,), generator=torch.Generator().manual_seed(1))
    per_row = [lines_per_warp(elements(kernels, ids, 120, s)[1]) / 2048 for s in (False, True)]
    assert per_row == pytest.approx([7.1, 5.3], abs=0.1)
    model = requests_per_row(120)
    assert per_row == pytest.approx([model["naive"], model["aligned"]], abs=0.1)


def test_shifted_threads_keep_their_place_in_a_line(kernels: Any):
    """Thread i reads an element whose position in its line is i's, unless the row wraps around."""
    ids = torch.randint(0, 900, (50,), generator=torch.Generator().manual_seed(3))
    for width in (33, 120, 257):
        dst, src = elements(kernels, ids, width, shifted=True)
        wraps = dst < torch.arange(50 * width)
        assert torch.equal((src % LINE)[~wraps], (torch.arange(50 * width) % LINE)[~wraps])


@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(
    "width, dtype",
    [(1, torch.float32), (33, torch.float32), (120, torch.float32), (2, torch.float16),
     (66, torch.bfloat16), (5, torch.float64), (12, torch.uint8)],
)  # fmt: skip
def test_rows_equal_index_select(
    kernels: Any, width: int, dtype: torch.dtype, shifted: bool, ids_dtype: torch.dtype
):
    draws = torch.Generator().manual_seed(width)
    raw = torch.randint(0, 256, (70 * width * dtype.itemsize,), dtype=torch.uint8, generator=draws)
    table = raw.view(dtype).view(70, width)
    ids = torch.randint(0, 70, (23,), generator=draws).to(ids_dtype)
    out = torch.zeros(23, width, dtype=dtype)
    kernels.elementwise(
        pointer(table), ctypes.c_int64(70), pointer(ids), ctypes.c_int(ids_dtype is torch.int64),
        ctypes.c_int64(23), ctypes.c_int64(width * dtype.itemsize), pointer(out),
        ctypes.c_int(shifted),
    )  # fmt: skip
    expected = table.view(torch.uint8).index_select(0, ids)
    assert torch.equal(out.view(torch.uint8), expected)
