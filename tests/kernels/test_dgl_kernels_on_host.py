"""DGL's own kernels on the host, thread by thread (native/tests/cuda_on_host).

A block for each row draws what the CPU draws; the id map that probes again gives what the one that
remembers gives.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from ops_on_host import on_host, pointer
from torch import Tensor

from gnnbench.kernels import sampler

KEY = 0x0123_4567_89AB_CDEF


@pytest.fixture(scope="module")
def hop() -> Any:
    return on_host("hop", "hop", "reservoir_by_block")


@pytest.fixture(scope="module")
def maps() -> Any:
    library = on_host("id_map", "id_map")
    library.id_map.restype = ctypes.c_int64
    return library


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("fanout", [1, 5, 130])
def test_a_block_for_each_row_draws_what_the_cpu_draws(hop: Any, dtype: torch.dtype, fanout: int):
    degrees = np.array([0, 1, fanout, fanout + 1, fanout + 6, 700, 3000, 2])
    indptr = torch.from_numpy(np.concatenate([[0], degrees.cumsum()]))
    draws = torch.Generator().manual_seed(fanout)
    indices = torch.randint(0, 8, (int(indptr[-1]),), generator=draws).to(dtype)
    dst = torch.tensor([6, 0, 3, 2, 1, 7, 5, 4], dtype=dtype)
    right = sampler.sample_hop(
        indptr, indices, dst, fanout, pick="reservoir", key=KEY, hop=1, batch=9
    )
    edges = right[1].numel()
    offsets = torch.cat([right[0].long(), torch.zeros(1, dtype=torch.int64)])
    out = torch.zeros(9, dtype=torch.int32), torch.zeros(edges, dtype=dtype), torch.zeros(edges)
    positions, slots = torch.zeros(edges, dtype=torch.int64), torch.zeros(edges, dtype=torch.int32)
    whole = ctypes.c_int64
    hop.reservoir_by_block(
        ctypes.c_int(dtype is torch.int64), pointer(indptr), pointer(indices), whole(8),
        whole(indices.numel()), pointer(dst), whole(8), whole(fanout), whole(KEY), whole(1),
        whole(9), pointer(offsets), pointer(slots), pointer(out[0]), pointer(out[1]),
        pointer(positions),
    )  # fmt: skip
    assert offsets[-1] == 0
    assert torch.equal(out[0], right[0])
    assert torch.equal(out[1], right[1])
    assert torch.equal(positions, right[2])


def map_ids(maps: Any, dst: Tensor, neighbors: Tensor, probes: bool) -> tuple[int, Tensor, Tensor]:
    nodes = torch.full((dst.numel() + neighbors.numel(),), -7, dtype=dst.dtype)
    local = torch.full((neighbors.numel(),), -7, dtype=torch.int32)
    found = maps.id_map(
        ctypes.c_int(dst.dtype is torch.int64), pointer(dst), ctypes.c_int64(dst.numel()),
        pointer(neighbors), ctypes.c_int64(neighbors.numel()), ctypes.c_int(probes),
        pointer(nodes), pointer(local),
    )  # fmt: skip
    return found, nodes, local


@pytest.mark.parametrize("probes", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("num_dst, num_neighbors, top", [(0, 9, 9), (9, 0, 9), (60, 900, 500)])
def test_ids_are_numbered_as_on_the_cpu(
    maps: Any, probes: bool, dtype: torch.dtype, num_dst: int, num_neighbors: int, top: int
):
    rng = np.random.default_rng(num_neighbors)
    dst = torch.from_numpy(rng.permutation(top)[:num_dst]).to(dtype)
    neighbors = torch.from_numpy(rng.integers(0, top, num_neighbors)).to(dtype)
    right_nodes, right_local = sampler.id_map(dst, neighbors)
    found, nodes, local = map_ids(maps, dst, neighbors, probes)
    assert found == right_nodes.numel()
    assert torch.equal(nodes[:found], right_nodes)
    assert torch.equal(local, right_local)


@pytest.mark.parametrize("bad", [[[1], [2, -1, 3]], [[-5], [2]], [[1, 2, 1], [2]]])
def test_bad_ids_are_faults_of_both(maps: Any, bad: list[list[int]]):
    dst, neighbors = (torch.tensor(ids) for ids in bad)
    plain, probing = (map_ids(maps, dst, neighbors, probes)[0] for probes in (False, True))
    assert plain == probing < 0
