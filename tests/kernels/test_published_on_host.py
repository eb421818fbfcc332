"""PGSampler's kernel as published, on the host, thread by thread (native/tests/cuda_on_host)."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from ops_on_host import on_host, pointer
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.kernels.pgsampler import pgsampler_as_published
from gnnbench.kernels.sampler import hop_by_hop

KEY = 0x0123_4567_89AB_CDEF


@pytest.fixture(scope="module")
def kernels() -> Any:
    return on_host("pgsampler", "pgsampler", "published")


@pytest.fixture(scope="module")
def coo() -> Any:
    return on_host("coo", "coo")


def graph_of(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """40 nodes; a long row, empty ones, parallel edges."""
    rng = np.random.default_rng(3)
    degrees = rng.integers(0, 9, 40)
    degrees[[3, 17]] = [700, 130]
    indptr = torch.from_numpy(np.concatenate([[0], degrees.cumsum()]))
    indices = torch.from_numpy(rng.integers(0, 40, int(indptr[-1]))).to(dtype)
    return indptr, indices


def sample(
    kernels: Any, dtype: torch.dtype, fanouts: list[int], persistent: bool, fetch_size: int,
    tasks: int = 200, edges: int = 600,
) -> tuple[list[tuple[Tensor, Tensor, Tensor]], list[int]]:  # fmt: skip
    indptr, indices = graph_of(dtype)
    seeds, whole, number = torch.tensor([3, 0, 21, 17, 5]), ctypes.c_int64, ctypes.c_int
    arrays = [
        (torch.zeros(edges, dtype=dtype), torch.zeros(edges, dtype=dtype),
         torch.zeros(edges, dtype=torch.int64))
        for _ in fanouts
    ]  # fmt: skip
    addresses = (ctypes.c_void_p * (3 * len(fanouts)))(
        *(t.data_ptr() for hop in arrays for t in hop)
    )
    counts = torch.zeros(len(fanouts) + 3, dtype=torch.int64)
    capacity, wanted = torch.full((len(fanouts),), edges), torch.tensor(fanouts)
    kernels.published(
        number(dtype is torch.int64), pointer(indptr), pointer(indices), whole(40),
        whole(indices.numel()), pointer(seeds), whole(5), pointer(wanted), number(len(fanouts)),
        whole(KEY), whole(4), number(persistent), number(fetch_size), whole(tasks),
        pointer(capacity), addresses, pointer(counts),
    )  # fmt: skip
    return arrays, counts.tolist()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("fanouts", [[3], [4, 3, 2], [130, 2], [1, 1, 1, 1]])
@pytest.mark.parametrize(
    ("persistent", "fetch_size"), [(True, 1), (True, 5), (True, 32), (False, 1), (False, 5)]
)
def test_each_hop_has_the_edges_of_the_cpu(
    kernels: Any, dtype: torch.dtype, fanouts: list[int], persistent: bool, fetch_size: int
):
    right = hop_by_hop(
        *graph_of(dtype), torch.tensor([3, 0, 21, 17, 5]), fanouts, pick="reservoir",
        frontier="cumulative", key=KEY, batch=4, with_positions=True,
    )  # fmt: skip
    arrays, (*edges, enqueued, finished, faults) = sample(
        kernels, dtype, fanouts, persistent, fetch_size
    )
    assert faults == 0
    assert enqueued == finished == sum(block.num_dst for block in right.blocks)
    for block, (rows, cols, positions), count in zip(
        reversed(right.blocks), arrays, edges, strict=True
    ):
        nodes = block.src_nodes
        dst = nodes[: block.num_dst].repeat_interleave(block.indptr.diff().long())
        expected = zip(
            dst.tolist(), nodes[block.indices.long()].tolist(), block.positions.tolist(),
            strict=True,
        )  # fmt: skip
        found = zip(*(t[:count].tolist() for t in (rows, cols, positions)), strict=True)
        assert Counter(found) == Counter(expected)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("small", [{"tasks": 9}, {"edges": 12}])
def test_what_does_not_fit_is_a_fault_and_ends(
    kernels: Any, persistent: bool, small: dict[str, int]
):
    _, counts = sample(kernels, torch.int32, [4, 3, 2], persistent, 5, **small)
    assert counts[-1] != 0


@pytest.mark.parametrize("n", [0, 1, 500])
def test_edges_in_any_order_become_rows(coo: Any, n: int):
    rng = np.random.default_rng(n)
    rows = torch.from_numpy(rng.integers(0, 7, n)).int()
    cols = torch.from_numpy(rng.integers(0, 90, n)).int()
    positions = torch.arange(n) * 3
    indptr, indices = torch.zeros(9, dtype=torch.int32), torch.zeros(n, dtype=torch.int32)
    placed = torch.zeros(n, dtype=torch.int64)
    coo.coo_to_csr(
        pointer(rows), pointer(cols), pointer(positions), ctypes.c_int64(n), ctypes.c_int64(8),
        pointer(indptr), pointer(indices), pointer(placed),
    )  # fmt: skip
    assert indptr[0] == 0 and indptr[-1] == n
    assert torch.equal(indptr.diff(), torch.bincount(rows, minlength=8).int())
    for row in range(8):
        here = slice(int(indptr[row]), int(indptr[row + 1]))
        mine = rows == row
        assert Counter(zip(indices[here].tolist(), placed[here].tolist(), strict=True)) == Counter(
            zip(cols[mine].tolist(), positions[mine].tolist(), strict=True)
        )


def test_the_cpu_is_refused():
    with pytest.raises(UnsupportedError, match=r"^PGSampler as published samples on a GPU"):
        pgsampler_as_published(*graph_of(torch.int32), torch.tensor([1]), [2], key=KEY, batch=0)
