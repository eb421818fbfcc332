"""Fused-Map as a CUDA graph: every replay draws the batch it is given."""

import pytest
import torch
from gpu_graphs import skewed

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels.fused import CapturedFusedMap, HighWater, fused_map
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

IDS = [torch.int32, torch.int64]


def captured(csc, max_seeds, fanouts, capacity, pick="floyd", frontier="cumulative"):
    graph = (csc.indptr.cuda(), csc.indices.cuda())
    rest = {"pick": pick, "frontier": frontier, "capacity": capacity, "device": "cuda"}
    return CapturedFusedMap(*graph, max_seeds, fanouts, with_positions=True, **rest)


def expected_of(csc, seeds, fanouts, key, batch, pick="floyd", frontier="cumulative"):
    rest = {"pick": pick, "frontier": frontier, "key": key, "batch": batch}
    return hop_by_hop(csc.indptr, csc.indices, seeds, fanouts, with_positions=True, **rest)


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("pick", ["floyd", "reservoir", "random_walk"])
def test_replays_draw_their_own_batches(dtype, frontier, pick):
    csc = skewed(5000, dtype, seed=1, top=2000)
    spec = PickSpec.random_walk(6, 2, 0.2) if pick == "random_walk" else PickSpec.of(pick)
    fanouts = [6, 5, 4]
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(2)).to(dtype)
    mark = HighWater()
    for batch in range(3):
        seeds = order[200 * batch : 200 * (batch + 1)].cuda()
        rest = {"pick": spec, "frontier": frontier, "key": 5, "batch": batch}
        _, took = fused_map(csc.indptr.cuda(), csc.indices.cuda(), seeds, fanouts, **rest)
        mark.see(took)
    sampler = captured(csc, 200, fanouts, mark.capacity, spec, frontier)
    for key in (5, -(2**63), 2**62):
        for batch in (0, 1, 7, 2**32 - 1):
            seeds = order[100 * (batch % 9) : 100 * (batch % 9) + 200 - batch % 50]
            got = sampler.sample(seeds.cuda(), key=key, batch=batch)
            expected = expected_of(csc, seeds, fanouts, key, batch, spec, frontier)
            assert same_work(expected, got, frontier) is None
    assert sampler.sample(order[:0].cuda(), key=1, batch=0).sampled_edges == 0


def test_a_batch_beyond_the_capacity_is_sampled_all_the_same():
    csc = skewed(3000, torch.int32, seed=3, top=500)
    sampler = captured(csc, 300, [5, 5], [350, 100, 400, 200])
    for count in (300, 3, 299, 5):
        seeds = torch.arange(count, dtype=torch.int32)
        got = sampler.sample(seeds.cuda(), key=9, batch=count)
        assert same_work(expected_of(csc, seeds, [5, 5], 9, count), got) is None


def test_a_batch_is_read_before_the_next_is_drawn():
    csc = skewed(3000, torch.int32, seed=3)
    sampler = captured(csc, 100, [5], [4000, 4000])
    seeds = torch.arange(100, device="cuda")
    first = sampler.sample(seeds, key=1, batch=1).blocks[0]
    kept = first.indices.clone()
    again = sampler.sample(seeds, key=1, batch=1).blocks[0]
    assert again.indices.data_ptr() == first.indices.data_ptr()
    assert again.indices.numel() == kept.numel()


def test_errors():
    csc = skewed(100, torch.int32, seed=3)
    sampler = captured(csc, 10, [5], [200, 200])
    for seeds, text in (
        ([1, 1], "seeds holds an id twice"),
        ([100], "seeds holds an id outside the graph"),
        ([2**32 + 1], "seeds holds an id outside the graph"),
        (list(range(11)), "at most 10 as recorded"),
    ):
        with pytest.raises(UsageError, match=text):
            sampler.sample(torch.tensor(seeds, device="cuda"), key=1, batch=0)
    with pytest.raises(UsageError, match="batch must be at least 0 and below"):
        sampler.sample(torch.arange(10), key=1, batch=2**32)
    good = torch.arange(10)
    got = sampler.sample(good.cuda(), key=1, batch=0)
    assert same_work(expected_of(csc, good, [5], 1, 0), got) is None
    with pytest.raises(UsageError, match="capacity must hold two numbers a hop, it is empty"):
        captured(csc, 10, [5], [])
    csc.indices[:] = 100
    with pytest.raises(DataError, match="indices holds an id that is not a node"):
        captured(csc, 100, [5], [200, 200]).sample(torch.arange(100).cuda(), key=1, batch=0)
