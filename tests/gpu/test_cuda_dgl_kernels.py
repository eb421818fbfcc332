"""DGL's own kernels: a block for each row, and an id map that probes again in each pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, assert_same, csc_of, skewed

import gnnbench
from gnnbench.core.errors import UnsupportedError
from gnnbench.kernels.sampler import hop_by_hop, id_map

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]
KEY = 0x0123_4567_89AB_CDEF
LITERAL = {"worker": "block", "id_map": "three-pass-probing"}


def batch(csc: Csc, seeds, fanouts, put, frontier="cumulative", **how):
    how = {"pick": "reservoir", "key": KEY, "batch": 3, "with_positions": True, **how}
    return hop_by_hop(
        put(csc.indptr), put(csc.indices), put(seeds), fanouts, frontier=frontier, **how
    )


def assert_equal_blocks(ours, right) -> None:
    for block, other in zip(ours.blocks, right.blocks, strict=True):
        for name in ("indptr", "indices", "src_nodes", "positions"):
            assert torch.equal(getattr(block, name).cpu(), getattr(other, name)), name


@pytest.mark.parametrize("how", [{"worker": "block"}, {"id_map": "three-pass-probing"}, LITERAL])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2], [2, 600, 2]])
def test_blocks_equal_the_cpu_bit_by_bit(gpu, how, dtype, frontier, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=9000)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:300].to(dtype)
    right = batch(csc, seeds, fanouts, lambda t: t, frontier)
    assert_equal_blocks(batch(csc, seeds, fanouts, gpu.put, frontier, **how), right)


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 5, 127, 128, 129, 600])
def test_rows_of_any_degree(gpu, dtype, fanout):
    lengths = [0, 1, fanout - 1, fanout, fanout + 1, fanout + 4, 2048 + fanout, 100_003, 3]
    csc = csc_of(np.array(lengths), dtype, seed=5)
    seeds = torch.tensor([7, 0, 4, 2, 8, 6, 1, 3, 5], dtype=dtype)
    right = batch(csc, seeds, [fanout], lambda t: t)
    assert_equal_blocks(batch(csc, seeds, [fanout], gpu.put, **LITERAL), right)


def test_rows_that_are_taken_whole(gpu):
    csc = skewed(500, torch.int32, seed=1, top=300)
    seeds = torch.arange(0, 60, 3)
    right = batch(csc, seeds, [-1, 4], lambda t: t)
    assert_equal_blocks(batch(csc, seeds, [-1, 4], gpu.put, **LITERAL), right)


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("num_dst, num_neighbors", [(0, 0), (0, 9), (9, 0), (1, 1), (900, 30_000)])
@pytest.mark.parametrize("top", [1000, 2**31 - 1])
def test_id_map_that_probes_equals_the_cpu(gpu, dtype, num_dst, num_neighbors, top):
    rng = np.random.default_rng(num_neighbors)
    dst = torch.from_numpy(rng.permutation(1000)[:num_dst] * (top // 1000)).to(dtype)
    neighbors = torch.from_numpy(rng.integers(0, top, num_neighbors)).to(dtype)
    probed = id_map(gpu.put(dst), gpu.put(neighbors), "three-pass-probing")
    assert_same(probed, id_map(dst, neighbors))


@pytest.mark.parametrize("bad", [[[1], [2, -1, 3]], [[-5], [2]], [[1, 2, 1], [2]]])
def test_id_map_that_probes_refuses_bad_ids(gpu, bad):
    dst, neighbors = (gpu.put(torch.tensor(ids)) for ids in bad)
    with pytest.raises(Exception) as plain:
        id_map(dst, neighbors)
    with pytest.raises(type(plain.value)) as probing:
        id_map(dst, neighbors, "three-pass-probing")
    assert str(probing.value) == str(plain.value)


def test_a_block_for_each_row_needs_reservoirs_and_a_gpu(gpu):
    csc = skewed(100, torch.int32, seed=1)
    graph = (csc.indptr, csc.indices)
    how = {"fanouts": [2], "row_worker": "block"}
    gnnbench.build_sampler("hop-by-hop", graph, device="cuda", **how).close()
    for more in ({"pick": "floyd"}, {"topology": "cpu", "pick": "reservoir"}):
        with pytest.raises(UnsupportedError, match=r"^row_worker 'block' draws reservoirs"):
            gnnbench.build_sampler("hop-by-hop", graph, device="cuda", **how, **more)
