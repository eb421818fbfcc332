"""PGSampler's kernel draws the same as the CPU's hop-by-hop sampler, and loses no task."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu_graphs import Csc, csc_of, graphs_and_seeds, skewed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgsampler_on_gpu import (
    HAND,
    IDS,
    PICKS,
    SOUND,
    assert_sound,
    check,
    expected_of,
    on_gpu,
    pick_of,
)

from gnnbench.core.errors import UsageError
from gnnbench.kernels.fused import HighWater
from gnnbench.kernels.pgsampler import TaskStats
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("pick", ["reservoir", "floyd", "fisher_yates"])
def test_batch_by_hand(variant, dtype, pick):
    csc = Csc(HAND.indptr, HAND.indices.to(dtype))
    batch, stats = on_gpu(csc, torch.tensor([2, 0]), [3, 6], pick, variant=variant)
    inner, outer = batch.blocks
    nodes = inner.src_nodes.tolist()
    assert nodes[:2] == [2, 0]  # then new nodes of the first hop, then of the second
    assert sorted(nodes[2:5]) == [1, 3, 4]
    assert nodes[5:] == [5]
    assert outer.src_nodes.tolist() == nodes[:5]
    assert outer.indptr.tolist() == [0, 3, 6]
    assert [nodes[i] for i in outer.indices.tolist()] == [2, 4, 4, 1, 2, 3]
    assert outer.positions.tolist() == [4, 5, 6, 0, 1, 2]
    rows = {0: [1, 2, 3], 1: [0], 2: [2, 4, 4], 3: [], 4: [0, 1, 2, 3, 4, 5]}
    ends = inner.indptr.tolist()
    for local, node in enumerate(nodes[:5]):
        row = inner.indices[ends[local] : ends[local + 1]].tolist()
        assert [nodes[i] for i in row] == rows[node]
    assert stats == TaskStats((7, 19), 7, 7, 0, 0, 0, 1)


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2], [2, 600, 2], [10, 10, 10]])
def test_batch_equals_cpu(variant, pick, dtype, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=700)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:100].to(dtype)
    check(csc, seeds, fanouts, pick_of(pick, csc), variant=variant)


@pytest.mark.parametrize("fetch_size", [1, 2, 5, 31, 32])
@pytest.mark.parametrize("pick", ["reservoir", "floyd"])
@pytest.mark.parametrize("variant", ["persistent", "non_persistent"])
def test_any_fetch_size(variant, fetch_size, pick):
    csc = skewed(20_000, torch.int32, seed=8, top=2000)
    seeds = torch.arange(0, 4000, 2)
    check(csc, seeds, [10, 10, 10], pick, variant=variant, fetch_size=fetch_size)


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 10, 64, 65, 600])
def test_long_rows_are_split(variant, dtype, fanout):
    # 4096 draws are one part and 4097 two.
    lengths = [
        100_000,
        0,
        3,
        4096 + fanout,
        4097 + fanout,
        8192 + fanout,
        100_003,
        1,
        8193 + fanout,
    ]
    csc = csc_of(np.array(lengths * 20), dtype, seed=5)
    for row, parts in enumerate([25, 0, 0, 0, 2, 2, 25, 0, 3]):
        stats = check(csc, torch.tensor([row]), [fanout], variant=variant)
        assert stats.parts == parts
    assert check(csc, torch.arange(180), [fanout, 3], variant=variant).parts >= 20 * 57


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanout", [1, 10, 64, 65, 600])
def test_long_rows_may_stay_whole(variant, dtype, fanout):
    # A row of 300_000 needs many more draws than a part after a split.
    csc = csc_of(np.array([300_000, 0, 3, 4097 + fanout, 70_000, 1] * 8), dtype, seed=6)
    how = {"variant": variant, "hubs": "whole"}
    for row in range(6):
        assert check(csc, torch.tensor([row]), [fanout], **how).parts == 0
    assert check(csc, torch.arange(48), [fanout, 3], **how).parts == 0
    # Room for the tasks is enough, because the queue has no other entries.
    stats = check(csc, torch.arange(48), [fanout], capacity=[49, 48 * fanout], **how)
    assert (stats.attempts, stats.capacity[0]) == (1, 48)


BY_BLOCK = {"worker": "block", "hubs": "whole"}


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [3], [70, 2], [2, 600, 2], [10, 10, 10]])
@pytest.mark.parametrize("variant", ["persistent", "non_persistent"])
def test_worker_may_be_a_block(variant, pick, dtype, fanouts):
    csc = skewed(4000, dtype, seed=len(fanouts), top=9000)
    seeds = torch.randperm(4000, generator=torch.Generator().manual_seed(9))[:100].to(dtype)
    how = {"variant": variant, **BY_BLOCK}
    assert check(csc, seeds, fanouts, pick_of(pick, csc), **how).parts == 0


@pytest.mark.parametrize("fetch_size", [1, 2, 5, 31, 32])
@pytest.mark.parametrize("pick", ["reservoir", "reservoir_thinned", "floyd"])
@pytest.mark.parametrize("variant", ["persistent", "non_persistent"])
def test_block_fetches_any_number_of_tasks(variant, fetch_size, pick):
    csc = skewed(20_000, torch.int32, seed=8, top=2000)
    seeds = torch.arange(0, 4000, 2)
    check(csc, seeds, [10, 10, 10], pick, variant=variant, fetch_size=fetch_size, **BY_BLOCK)


@pytest.mark.parametrize("variant", ["persistent", "non_persistent"])
def test_blocks_lose_no_task_under_contention(variant):
    csc = csc_of(np.full(500, 2), torch.int32, seed=2)
    graph = Csc(csc.indptr.cuda(), csc.indices.cuda())
    order = torch.randperm(500, generator=torch.Generator().manual_seed(4)).int()
    for batch in range(1500):
        seeds = order[batch % 490 : batch % 490 + 1 + batch % 3]
        got, stats = on_gpu(graph, seeds, [2, 3, 1], batch=batch, variant=variant, **BY_BLOCK)
        assert_sound(got, stats)
        if batch % 10 == 0:
            assert same_work(expected_of(csc, seeds, [2, 3, 1], batch=batch), got) is None


@pytest.mark.parametrize("small", [[0, 90_000], [90_000, 5], [0, 0]])
def test_blocks_restart_a_batch_that_does_not_fit(small):
    csc = skewed(8000, torch.int32, seed=2, top=6000)
    assert check(csc, torch.arange(300), [15, 10, 5], capacity=small, **BY_BLOCK).attempts > 1


def test_block_worker_needs_whole_hubs_and_the_persistent_variant():
    with pytest.raises(UsageError, match=r"^worker 'block' does not split rows; use it with"):
        on_gpu(HAND, torch.tensor([1]), [2], worker="block")
    with pytest.raises(UsageError, match=r"^worker 'block' requires variant 'persistent' or"):
        on_gpu(HAND, torch.tensor([1]), [2], variant="fusion", **BY_BLOCK)


@pytest.mark.parametrize("how", [{}, {"variant": "fusion"}, BY_BLOCK])
def test_local_ids_are_in_order_of_hops_and_nodes(how):
    csc = skewed(20_000, torch.int32, seed=8, top=2000)
    seeds = torch.randperm(20_000, generator=torch.Generator().manual_seed(1))[:1500].int()
    first, second = (on_gpu(csc, seeds, [7, 5, 3], **how)[0] for _ in range(2))
    for one, other in zip(first.blocks, second.blocks, strict=True):
        for name in ("indptr", "indices", "src_nodes", "positions"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
    assert torch.equal(first.input_nodes[:1500].cpu(), seeds)
    for block in first.blocks:
        new = block.src_nodes[block.num_dst :].cpu()
        assert torch.equal(new, new.sort().values)


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("dtype", IDS)
def test_memory_is_at_most_twice_the_blocks(dtype, positions):
    # As sparse as the point of Table I: a batch reaches at least a tenth of the nodes, but not all.
    csc = csc_of(np.full(1_000_000, 12), dtype, seed=3)
    graph = Csc(csc.indptr.cuda(), csc.indices.cuda())
    most = HighWater()
    how = {"with_positions": positions}
    for start in (0, 7):
        seeds = torch.arange(start, 2048 * 400, 400).cuda()
        most.see(on_gpu(graph, seeds, [10, 10, 10], capacity=most.capacity, **how)[1].capacity)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    drawn = on_gpu(graph, seeds, [10, 10, 10], capacity=most.capacity, **how)
    torch.cuda.synchronize()
    blocks = torch.cuda.memory_allocated() - before
    assert drawn[1].attempts == 1
    assert torch.cuda.max_memory_allocated() - before - blocks <= 2 * blocks


def test_unknown_hubs_option_is_refused():
    with pytest.raises(UsageError, match=r"^hubs must be 'split' or 'whole', not 'shared'$"):
        on_gpu(HAND, torch.tensor([1]), [2], hubs="shared")


@pytest.mark.parametrize("hops", [1, 2, 3, 7, 8, 15, 16, 31])
def test_any_number_of_hops(hops):
    # The flags of a vertex take 2, 4, 8, 16 or 32 bits of a word.
    csc = csc_of(np.array([1, 2, 0, 3, 1, 1, 2] * 9), torch.int32, seed=3)
    check(csc, torch.arange(0, 60, 7), [1 + hops % 2] * hops)


@pytest.mark.parametrize("graph_ids, seed_ids", [(IDS[0], IDS[1]), (IDS[1], IDS[0])])
def test_seeds_of_the_other_dtype(graph_ids, seed_ids):
    csc = skewed(600, graph_ids, seed=1)
    check(csc, torch.arange(50, 90, dtype=seed_ids), [4, 3], "floyd")


@pytest.mark.parametrize("variant", [*SOUND, "as_printed"])
def test_empty_and_isolated_seeds(variant):
    how = {"variant": variant, "unsafe": variant == "as_printed"}
    for seeds in (torch.empty(0, dtype=torch.int32), torch.tensor([3], dtype=torch.int32)):
        batch, stats = on_gpu(HAND, seeds, [3, 2], **how)
        if variant != "as_printed" or seeds.numel() == 0:
            assert same_work(expected_of(HAND, seeds, [3, 2]), batch) is None
        assert stats.capacity[1] == 0
    nothing = Csc(torch.tensor([0]), torch.empty(0, dtype=torch.int64))
    assert on_gpu(nothing, nothing.indices, [3], **how)[0].blocks[0].num_src == 0


def test_without_positions():
    csc = skewed(500, torch.int32, seed=4)
    seeds = torch.arange(40)
    batch, _ = on_gpu(csc, seeds, [4, 4], with_positions=False)
    assert same_work(expected_of(csc, seeds, [4, 4], with_positions=False), batch) is None


@pytest.mark.parametrize("pick", ["reservoir", "weighted_alias", "weighted_prefix"])
def test_topology_in_locked_memory(pick):
    csc = skewed(3000, torch.int32, seed=6, top=6000)
    check(csc, torch.arange(0, 900, 3), [5, 5], pick_of(pick, csc), put=lambda t: t.pin_memory())


@pytest.mark.parametrize("pick", ["reservoir", "floyd", "fisher_yates"])
@pytest.mark.parametrize("variant", SOUND)
def test_small_capacity_restarts_the_batch(pick, variant):
    csc = skewed(8000, torch.int32, seed=2, top=6000)
    seeds = torch.arange(0, 600, 2)
    most = HighWater()
    for fanouts in ([10, 10, 70], [15, 10, 5]):
        stats = check(csc, seeds, fanouts, pick, variant=variant)
        assert stats.attempts == 1
        most.see(stats.capacity)
    assert check(csc, seeds, [10, 10, 70], pick, capacity=most.capacity).attempts == 1
    # Each capacity too small, alone and together: the batch restarts and is correct.
    full = most.capacity
    for small in ([0, full[1]], [full[0], 5], [0, 0]):
        assert check(csc, seeds, [15, 10, 5], pick, variant=variant, capacity=small).attempts > 1


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    graphs_and_seeds(),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.sampled_from(PICKS),
    st.sampled_from(SOUND),
    st.integers(1, 32),
)
def test_any_batch_equals_cpu(drawn, fanouts, pick, variant, fetch_size):
    csc, seeds = drawn
    check(csc, seeds, fanouts, pick_of(pick, csc), variant=variant, fetch_size=fetch_size)


@pytest.mark.parametrize("variant", SOUND)
@pytest.mark.parametrize("degree", [1, 2])
def test_no_task_is_lost_under_contention(variant, degree):
    # Few tasks for thousands of workers: most of the time almost all wait.
    csc = csc_of(np.full(500, degree), torch.int32, seed=degree)
    graph = Csc(csc.indptr.cuda(), csc.indices.cuda())
    order = torch.randperm(500, generator=torch.Generator().manual_seed(4)).int()
    for batch in range(2500):
        first = batch % 490
        seeds = order[first : first + 1 + batch % 3]
        fanouts = [1, 1, 1, 1] if batch % 2 else [2, 3, 1]
        got, stats = on_gpu(graph, seeds, fanouts, variant=variant, batch=batch)
        assert_sound(got, stats)
        if batch % 5 == 0:
            assert same_work(expected_of(csc, seeds, fanouts, batch=batch), got) is None


def test_large_batches_under_contention():
    # Mean degree 1.2, tasks for many rounds of all workers.
    degrees = np.random.default_rng(1).poisson(1.2, 100_000)
    csc = csc_of(degrees, torch.int32, seed=9)
    graph = Csc(csc.indptr.cuda(), csc.indices.cuda())
    for batch in range(200):
        seeds = torch.arange(batch, 100_000, 20 + batch)
        got, stats = on_gpu(graph, seeds, [10, 10, 10], batch=batch)
        assert_sound(got, stats)
        if batch % 40 == 0:
            assert same_work(expected_of(csc, seeds, [10, 10, 10], batch=batch), got) is None


def test_as_printed_counts_lost_tasks():
    degrees = np.random.default_rng(1).poisson(1.2, 20_000)
    csc = csc_of(degrees, torch.int32, seed=9)
    for n in (1, 64, 512, 2048):
        for batch in range(20):
            got, stats = on_gpu(
                csc,
                torch.arange(n),
                [10, 10, 10],
                batch=batch,
                variant="as_printed",
                unsafe=True,
            )
            assert stats.lost == stats.enqueued - stats.processed >= 0
            assert same_work(got, got) is None, "blocks of what was sampled are well-formed"
            drawn = sum(int((b.indptr.diff() > 0).sum()) for b in got.blocks)
            assert drawn <= stats.processed


def test_non_default_stream():
    csc = skewed(5000, torch.int32, seed=3)
    seeds = torch.arange(300)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        batch, _ = on_gpu(csc, seeds, [10, 5])
    stream.synchronize()
    assert same_work(expected_of(csc, seeds, [10, 5]), batch) is None
