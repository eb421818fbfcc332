"""Device memory kept by a batch, and errors when device memory is too small."""

import gc

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, csc_of, skewed

from gnnbench.kernels.fused import DenseMap, HighWater, fastsample, fused_id_map, fused_map
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.pgsampler import pgsampler
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

# Torch's allocator does not split blocks above 1 MiB if less than 1 MiB would remain.
SLACK = 1 << 20
FUSED = ("fused-map", "fastsample")
HOW = {"pick": "floyd", "frontier": "cumulative", "key": 3, "batch": 1, "with_positions": True}
OF_TASKS = {"pick": "floyd", "key": 3, "batch": 1, "with_positions": True}


def bytes_of(t: torch.Tensor) -> int:
    return t.numel() * t.element_size()


class SamplerState:
    """One sampler with its state, whether capacities are known or not."""

    def __init__(self, name: str, csc: Csc) -> None:
        self.graph = csc.indptr.cuda(), csc.indices.cuda()
        self.name = name
        self.table = VersionedTable("cuda")
        self.dense_map = DenseMap.of(csc.num_nodes, "cuda")
        self.mark = HighWater()

    def __call__(self, seeds, fanouts, frontier="cumulative"):
        how = {**HOW, "frontier": frontier}
        args = (*self.graph, seeds, fanouts)
        if self.name == "hop-by-hop":
            return hop_by_hop(*args, **how)
        if self.name == "fused-map-by-hop":
            return hop_by_hop(*args, **how, id_map="fused")
        if self.name == "gnnlab":
            return gnnlab(*args, **how, table=self.table)
        how["capacity"] = self.mark.capacity
        if self.name == "fused-map":
            drawn, took = fused_map(*args, **how)
        elif self.name == "fastsample":
            drawn, took = fastsample(*args, **how, dense_map=self.dense_map)
        else:
            drawn, stats = pgsampler(*args, **OF_TASKS, capacity=self.mark.capacity)
            took = stats.capacity
        self.mark.see(took)
        return drawn


SAMPLERS = ["hop-by-hop", "gnnlab", "fused-map-by-hop", "fused-map", "fastsample", "pgsampler"]
KINDS = ["src_nodes", "indptr", "indices", "positions"]


@pytest.mark.parametrize("known", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_reference_to_a_tensor_keeps_no_other_memory(name, kind, known):
    # A batch takes about 25 MB, most of it for the edges of the input block.
    csc = csc_of(np.full(200_000, 12), torch.int64, seed=3)
    draw = SamplerState(name, csc)
    seeds = torch.randperm(200_000, generator=torch.Generator().manual_seed(0))[:20_000].cuda()
    if known or name == "gnnlab":  # the table grows once
        draw(seeds, [10, 10])
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    drawn = draw(seeds, [10, 10])
    whole = torch.cuda.memory_allocated() - before
    kept = getattr(drawn.blocks[0], kind)
    with_it = bytes_of(kept)
    if name in FUSED and kind in ("indptr", "indices"):  # the offsets and columns of all hops
        with_it = sum(bytes_of(b.indptr) + bytes_of(b.indices) for b in drawn.blocks)
    elif name in FUSED and kind == "positions":
        with_it = sum(bytes_of(b.positions) for b in drawn.blocks)
    total = sum(bytes_of(getattr(b, k)) for b in drawn.blocks for k in KINDS[1:])
    total += bytes_of(drawn.blocks[0].src_nodes)
    assert total > 16 << 20
    # Once fused samplers know the sizes, they draw a batch in place, with a quarter of extra room.
    room = HighWater.MARGIN if known and name in FUSED else 1.0
    assert whole <= room * (total + bytes_of(drawn.blocks[1].src_nodes)) + 8 * SLACK
    del drawn
    gc.collect()
    left = torch.cuda.memory_allocated() - before
    assert bytes_of(kept) <= left <= room * with_it + SLACK
    del kept
    gc.collect()
    assert torch.cuda.memory_allocated() <= before


@pytest.mark.parametrize("name", FUSED)
def test_blocks_of_new_share_one_csc(name):
    csc = skewed(50_000, torch.int32, seed=4)
    drawn = SamplerState(name, csc)(torch.arange(1000, device="cuda"), [5, 5], "new")
    inner, outer = drawn.blocks[1], drawn.blocks[0]
    for kind in KINDS:
        part, all_of_it = getattr(inner, kind), getattr(outer, kind)
        assert part.data_ptr() == all_of_it.data_ptr()
    storages = {kind: getattr(outer, kind).untyped_storage() for kind in KINDS}
    assert storages["src_nodes"].nbytes() == bytes_of(outer.src_nodes)
    assert storages["indptr"].data_ptr() == storages["indices"].data_ptr()
    # Arrays of one allocation begin at multiples of 32 entries.
    assert (
        storages["indptr"].nbytes() <= bytes_of(outer.indptr) + bytes_of(outer.indices) + 2 * 32 * 4
    )
    assert storages["positions"].nbytes() <= bytes_of(outer.positions) + 32 * 8


def test_id_map_keeps_only_the_nodes():
    ids = torch.zeros(1_000_000, dtype=torch.int64, device="cuda")
    nodes, _ = fused_id_map(ids[:1], [ids])
    assert nodes.untyped_storage().nbytes() == 8


# The seeds' neighbours are isolated: batches are small, the worst case is 2^24 edges per hop.
def star() -> Csc:
    degrees = torch.zeros(100_000, dtype=torch.int64)
    degrees[:2000] = 10
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    indices = torch.arange(2000, 22_000, dtype=torch.int32)
    return Csc(indptr, indices)


@pytest.fixture
def little_memory():
    """Limits the process to about 64 MiB more than its current memory."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    limit = torch.cuda.memory_reserved() + (64 << 20)
    torch.cuda.set_per_process_memory_fraction(limit / total)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


WITH = {"pick": "with_replacement", "key": 3, "batch": 1, "with_positions": True}


@pytest.mark.parametrize("name", ["fused-map", "fastsample"])
def test_too_large_capacity_estimate_is_reduced(name, little_memory):
    csc = star()
    seeds = torch.arange(2000, dtype=torch.int32)
    args = (csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), [10, 1000, 1000])
    if name == "fused-map":
        drawn, took = fused_map(*args, **WITH, frontier="new")
    else:
        dense_map = DenseMap.of(csc.num_nodes, "cuda")
        drawn, took = fastsample(*args, **WITH, frontier="new", dense_map=dense_map)
        assert bool((dense_map.ids == -1).all())
    right = hop_by_hop(csc.indptr, csc.indices, seeds, [10, 1000, 1000], **WITH, frontier="new")
    assert same_work(right, drawn, "new") is None
    nodes = right.input_nodes.numel()
    assert took == [nodes, 20_000, nodes, 0, nodes, 0]


def test_too_large_queue_is_reduced(little_memory):
    csc = star()
    seeds = torch.arange(2000, dtype=torch.int32)
    drawn, _ = pgsampler(
        csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), [10, 100, 100], **WITH
    )
    args = (csc.indptr, csc.indices, seeds, [10, 100, 100])
    right = hop_by_hop(*args, **WITH, frontier="cumulative")
    assert same_work(right, drawn) is None


@pytest.mark.parametrize("name", ["fused-map", "fastsample", "pgsampler"])
def test_too_large_batch_is_an_error(name, little_memory):
    # 2000 rows of 10 000 edges, 12 bytes each with their positions.
    draw = SamplerState(name, star())
    seeds = torch.arange(2000, device="cuda", dtype=torch.int32)
    args = (*draw.graph, seeds, [10_000])
    with pytest.raises(RuntimeError, match="CUDA out of memory in gnnbench::"):
        if name == "pgsampler":
            pgsampler(*args, **WITH)
        elif name == "fused-map":
            fused_map(*args, **WITH, frontier="new")
        else:
            fastsample(*args, **WITH, frontier="new", dense_map=draw.dense_map)
    assert bool((draw.dense_map.ids == -1).all())
    assert draw(seeds[:10], [2]).sampled_edges == 20
