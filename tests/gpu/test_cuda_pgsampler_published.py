"""PGSampler as published, and DGL's method with edges in COO, draw what the CPU draws."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, csc_of, skewed
from pgsampler_on_gpu import HAND, IDS, KEY, expected_of

import gnnbench
from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels.fused import HighWater
from gnnbench.kernels.pgsampler import TaskStats, pgsampler_as_published
from gnnbench.kernels.sampler import hop_by_hop
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu

SCHEDULES = [(True, 1), (True, 5), (True, 32), (False, 1), (False, 5)]


def on_gpu(csc: Csc, seeds, fanouts, put=lambda t: t.cuda(), **how):
    how = {"key": KEY, "batch": 3, "with_positions": True, **how}
    return pgsampler_as_published(put(csc.indptr), put(csc.indices), seeds.cuda(), fanouts, **how)


def check(csc: Csc, seeds, fanouts, **how) -> TaskStats:
    batch, stats = on_gpu(csc, seeds, fanouts, **how)
    assert stats.lost == 0
    assert stats.enqueued == stats.processed == sum(b.num_dst for b in batch.blocks)
    edges = [b.indices.numel() for b in reversed(batch.blocks)]
    assert stats.capacity == (stats.enqueued, *edges)
    assert same_work(expected_of(csc, seeds, fanouts), batch) is None
    for block in batch.blocks:
        assert block.indptr.dtype == block.indices.dtype == torch.int32
        assert block.src_nodes.dtype == csc.indices.dtype
    return stats


@pytest.mark.parametrize(("persistent", "fetch_size"), SCHEDULES)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2], [2, 600, 2], [-1, 2]])
def test_batch_equals_cpu(persistent, fetch_size, dtype, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=9000)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:100].to(dtype)
    check(csc, seeds, fanouts, persistent=persistent, fetch_size=fetch_size)


@pytest.mark.parametrize("persistent", [True, False])
def test_no_task_is_lost_under_contention(persistent):
    # Few tasks for thousands of threads: most of the time almost all blocks wait.
    csc = csc_of(np.full(500, 2), torch.int32, seed=2)
    graph = Csc(csc.indptr.cuda(), csc.indices.cuda())
    order = torch.randperm(500, generator=torch.Generator().manual_seed(4)).int()
    for batch in range(1000):
        seeds = order[batch % 490 : batch % 490 + 1 + batch % 3]
        got, stats = on_gpu(graph, seeds, [2, 3, 1], batch=batch, persistent=persistent)
        assert stats.lost == 0
        if batch % 10 == 0:
            assert same_work(expected_of(csc, seeds, [2, 3, 1], batch=batch), got) is None


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("small", [[0, 90_000, 90_000], [90_000, 5, 90_000], [0, 0, 0]])
def test_small_capacity_restarts_the_batch(persistent, small):
    csc = skewed(8000, torch.int32, seed=2, top=6000)
    how = {"persistent": persistent}
    assert check(csc, torch.arange(300), [15, 10], capacity=small, **how).attempts > 1
    most = HighWater()
    most.see(check(csc, torch.arange(300), [15, 10], **how).capacity)
    assert check(csc, torch.arange(300), [15, 10], capacity=most.capacity, **how).attempts == 1


def test_empty_and_isolated_seeds():
    for seeds in (torch.empty(0, dtype=torch.int32), torch.tensor([3], dtype=torch.int32)):
        batch, stats = on_gpu(HAND, seeds, [3, 2])
        assert same_work(expected_of(HAND, seeds, [3, 2]), batch) is None
        assert stats.capacity[1:] == (0, 0)


def test_without_positions_and_from_locked_memory():
    csc = skewed(3000, torch.int32, seed=6, top=6000)
    seeds = torch.arange(0, 900, 3)
    check(csc, seeds, [5, 5], put=lambda t: t.pin_memory())
    batch, _ = on_gpu(csc, seeds, [5, 5], with_positions=False)
    assert same_work(expected_of(csc, seeds, [5, 5], with_positions=False), batch) is None


def test_bad_seeds_graphs_and_arguments_are_refused():
    with pytest.raises(UsageError, match="holds an id twice"):
        on_gpu(HAND, torch.tensor([1, 2, 1]), [2])
    with pytest.raises(UsageError, match="holds an id outside the graph"):
        on_gpu(HAND, torch.tensor([6]), [2])
    broken = Csc(HAND.indptr, HAND.indices.clone())
    broken.indices[0] = 6
    with pytest.raises(DataError, match="holds an id that is not a node"):
        on_gpu(broken, torch.tensor([0]), [3])
    with pytest.raises(UsageError, match=r"^capacity must be empty or \(tasks, then edges"):
        on_gpu(HAND, torch.tensor([0]), [3], capacity=[9, 9, 9])
    with pytest.raises(UsageError, match="fetch_size must be between 1 and 32"):
        on_gpu(HAND, torch.tensor([0]), [3], fetch_size=33)


@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [2, 600, 2], [-1, 2]])
def test_dgl_with_edges_in_coo_equals_cpu(dtype, positions, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=9000)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:100].to(dtype)
    how = {"key": KEY, "batch": 3, "with_positions": positions, "pick": "reservoir"}
    batch = hop_by_hop(
        csc.indptr.cuda(), csc.indices.cuda(), seeds.cuda(), fanouts, frontier="cumulative",
        worker="block", id_map="three-pass-probing", edges="coo", **how,
    )  # fmt: skip
    right = expected_of(csc, seeds, fanouts, with_positions=positions)
    assert same_work(right, batch) is None
    for block, other in zip(batch.blocks, right.blocks, strict=True):
        assert torch.equal(block.src_nodes.cpu(), other.src_nodes)
        assert torch.equal(block.indptr.cpu(), other.indptr)


def test_samplers_as_published_have_the_digest_of_hop_by_hop():
    csc = skewed(5000, torch.int32, seed=3)
    graph, seeds = (csc.indptr, csc.indices), torch.arange(0, 900, 3)
    how = {"fanouts": [7, 5, 3], "seed": 5, "with_positions": True}
    cases = [
        ("pgsampler-as-published", {}),
        ("dgl-fusion-as-published", {}),
        ("dgl-fusion", {"blocks": "one-worker", "hubs": "whole", "fetch_size": 1}),
        ("dgl-fusion", {"blocks": "four-warps"}),
        ("hop-by-hop", {"row_worker": "block"}),
        (
            "hop-by-hop",
            {"row_worker": "block", "id_map": "three-pass-probing", "edges": "coo"},
        ),
    ]
    with closing(gnnbench.build_sampler("hop-by-hop", graph, pick="reservoir", **how)) as sampler:
        right = [sampler.sample(seeds, epoch=1, batch=number) for number in range(3)]
    for name, options in cases:
        built = gnnbench.build_sampler(name, graph, device="cuda", **how, **options)
        with closing(built) as sampler:
            for number, expected in enumerate(right):
                got = sampler.sample(seeds, epoch=1, batch=number)
                assert same_work(expected, got) is None, (name, options)
