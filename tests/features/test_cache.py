"""The cached store: rows, counters by source, and options."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import batch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.features.policies.policy import PRESAMPLED
from gnnbench.features.ranking import ranked_for
from gnnbench.features.spec import Cache, Match, Uva
from gnnbench.kernels.access import READERS


def footprint(epoch):
    """Batches by epoch: timed ones read nodes 7 and 9, presampled ones 3, 5 and 8."""
    epochs = {1: [[7, 9], [7]], 2: [[9]], PRESAMPLED: [[3, 5], [5]], PRESAMPLED + 1: [[8]]}
    return [torch.tensor(ids, dtype=torch.int32) for ids in epochs[epoch]]


def store(graph, **options):
    return Cache(**options).resolved("cpu").build(Job(Cell("e", "s", "g", ""), graph, Counts()))


def counted(cache_store):
    return {(name, where): value for _, name, where, value in cache_store.job.counts.rows()}


def cached_nodes(cache_store):
    """The nodes in the cache, in the order of their slots."""
    slots = cache_store._lookup.find(torch.arange(400))
    nodes = torch.nonzero(slots >= 0).squeeze(1)
    return nodes[slots[nodes].argsort()].tolist()


def test_hits_are_read_from_the_cache_and_misses_from_the_host(small_graph):
    cache_store = store(small_graph, policy="presc#1", ratio=2 / 400)  # rows 5 and 3
    spent = cache_store.prepare(footprint)
    assert {m.name for m in spent} == {"hotness_time_s", "rank_time_s", "fill_time_s", "cache_rows"}
    assert {m.name: v for m, v in spent.items()}["cache_rows"] == 2
    assert cached_nodes(cache_store) == [5, 3]
    for ids in ([3, 8, 5, 399], [], [5], [0, 1]):
        rows = cache_store.load(batch(ids))
        assert torch.equal(rows, small_graph.features[torch.tensor(ids, dtype=torch.int64)])
    assert counted(cache_store) == {
        ("feature_bytes", "cache"): 3 * 96, ("feature_bytes", "host"): 4 * 96,
        ("calls", "cache"): 4, ("calls", "host"): 4,
    }  # fmt: skip
    cache_store.close()


@pytest.mark.parametrize("policy", ["degree", "presc#1", "random"])
def test_nodes_are_ranked_before_the_cache_is_allocated(monkeypatch, small_graph, policy):
    cache_store = store(small_graph, policy=policy, ratio=0.5)
    sizes = []

    def recording(*args):
        sizes.append(cache_store._cache.shape[0])
        return ranked_for(*args)

    monkeypatch.setattr("gnnbench.features.cache.ranked_for", recording)
    cache_store.prepare(footprint)
    assert sizes == [0] and cache_store._cache.shape == (200, 24)


@pytest.mark.parametrize("policy", ["degree", "presc#1", "random", "optimal"])
def test_cache_of_all_rows_needs_no_ranking(monkeypatch, small_graph, policy):
    cache_store = store(small_graph, policy=policy, ratio=1)

    def forbidden(*args):
        raise AssertionError("nodes are ranked")

    monkeypatch.setattr("gnnbench.features.cache.ranked_for", forbidden)
    cache_store.prepare(forbidden)
    cache_store.foresee(forbidden, (1,))
    assert cached_nodes(cache_store) == list(range(400))
    assert torch.equal(cache_store.load(batch([399, 0, 7])), small_graph.features[[399, 0, 7]])
    assert counted(cache_store)["feature_bytes", "host"] == 0


def test_presampling_of_two_epochs_counts_both(small_graph):
    cache_store = store(small_graph, policy="presc#2", ratio=4 / 400)
    cache_store.prepare(footprint)
    assert cached_nodes(cache_store) == [5, 3, 8, 0]


def test_cached_row_is_a_copy(small_graph):
    """Rows are read from the counted source: a changed table changes only misses."""
    own = replace(small_graph, features=small_graph.features.clone())
    cache_store = store(own, policy="presc#1", ratio=1 / 400)
    cache_store.prepare(footprint)
    own.features.zero_()
    rows = cache_store.load(batch([5, 6]))
    assert torch.equal(rows[0], small_graph.features[5]) and not rows[1].any()


def test_optimal_cache_is_filled_for_the_given_epoch(small_graph):
    cache_store = store(small_graph, policy="optimal", ratio=1 / 400)
    assert [v for m, v in cache_store.prepare(footprint).items()] == [1]
    assert torch.equal(cache_store.load(batch([7, 9])), small_graph.features[[7, 9]])
    assert counted(cache_store)["feature_bytes", "cache"] == 0  # nothing is cached yet
    for epoch, node in ((1, 7), (2, 9)):
        cache_store.foresee(footprint, (epoch,))
        cache_store.job.counts.clear()
        for ids in footprint(epoch):
            assert torch.equal(
                cache_store.load(batch(ids.tolist())), small_graph.features[ids.long()]
            )
        assert cached_nodes(cache_store) == [node]
        hits = sum((ids == node).sum().item() for ids in footprint(epoch))
        assert counted(cache_store)["feature_bytes", "cache"] == hits * 96


def test_cache_of_several_epochs_is_filled_for_all_of_them(small_graph):
    """7 is visited most in epoch 1, 9 in epoch 2, and 3 in both together."""
    batches = {1: [[7, 3], [7], [7, 3]], 2: [[9, 3], [9, 3], [9]]}

    def visited(epoch):
        return [torch.tensor(ids, dtype=torch.int32) for ids in batches[epoch]]

    cache_store = store(small_graph, policy="optimal#2", ratio=1 / 400)
    cache_store.prepare(visited)
    cache_store.foresee(visited, (1, 2))
    assert cached_nodes(cache_store) == [3]
    for epoch in (1, 2):
        cache_store.job.counts.clear()
        for ids in visited(epoch):
            cache_store.load(batch(ids.tolist()))
        assert counted(cache_store)["feature_bytes", "cache"] == 2 * 96


def test_other_policies_ignore_foresee(small_graph):
    cache_store = store(small_graph, policy="presc#1", ratio=0.1)
    cache_store.prepare(footprint)
    before = cached_nodes(cache_store)

    def forbidden(epoch):
        raise AssertionError(epoch)

    cache_store.foresee(forbidden, (1,))
    assert cached_nodes(cache_store) == before and len(before) == 40
    policies = ("optimal", "optimal#10", "presc#10", "degree")
    assert [Cache(policy=p).foresees for p in policies] == [1, 10, 0, 0]
    assert [Match(table=Cache(policy=p)).foresees for p in policies] == [1, 10, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 24, 120])
@pytest.mark.parametrize("policy", ["degree", "random"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    batches=st.lists(st.lists(st.integers(0, 399), unique=True), min_size=1, max_size=5),
    ratio=st.floats(0, 1),
    ids=st.sampled_from([torch.int32, torch.int64]),
)
def test_rows_equal_the_table_bit_for_bit(small_graph, dtype, width, policy, batches, ratio, ids):
    table = torch.randn(400, width, generator=torch.Generator().manual_seed(1)).to(dtype)
    table[::7] = float("nan")
    table[1::7] = -0.0
    cache_store = store(replace(small_graph, features=table), policy=policy, ratio=ratio)
    cache_store.prepare(footprint)
    for few in batches:
        rows, expected = (
            cache_store.load(batch(few, ids)),
            table[torch.tensor(few, dtype=torch.int64)],
        )
        assert rows.dtype == dtype and rows.shape == expected.shape
        assert torch.equal(rows.contiguous().view(torch.uint8), expected.view(torch.uint8))
    got = counted(cache_store)
    assert (
        got["feature_bytes", "cache"] + got["feature_bytes", "host"]
        == sum(map(len, batches)) * width * table.element_size()
    )


def test_rows_are_correct_for_hundreds_of_batches(small_graph):
    """Batches of random size, with refills by the oracle in between."""
    draw = torch.Generator().manual_seed(3)
    cache_store = store(small_graph, policy="optimal", ratio=0.2)
    cache_store.prepare(footprint)
    for step in range(300):
        if step % 50 == 25:
            cache_store.foresee(footprint, (1 + step // 50 % 2,))
        n = int(torch.randint(0, 400, (), generator=draw))
        ids = torch.randperm(400, generator=draw)[:n].int()
        rows = cache_store.load(SimpleNamespace(input_nodes=ids))
        assert torch.equal(rows, small_graph.features[ids.long()]), step


@pytest.mark.parametrize("ratio", [-0.1, 1.01, float("nan"), "0.1", True, None])
def test_ratio_outside_0_to_1_is_refused(ratio):
    with pytest.raises(UsageError, match=r"ratio cannot be .*; it is a number from 0 to 1"):
        Cache(ratio=ratio)


def test_ratio_of_1_is_equal_as_int_and_float():
    assert Cache(ratio=1).plain() == Cache(ratio=1.0).plain()
    assert type(Cache(ratio=1).ratio) is float


def test_unknown_policy_and_uva_table_on_a_cpu_are_refused():
    with pytest.raises(UsageError, match="there is no cache policy 'presc'"):
        Cache(policy="presc")
    with pytest.raises(UnsupportedError, match=r"features.table=uva needs a GPU"):
        Cache(table="uva").resolved("cpu")


def test_table_that_a_gpu_reads_is_shared():
    assert Cache().resolved("cpu").shared("cpu") == ()
    for table in ("host", "uva"):
        assert Cache(table=table).resolved("cuda").shared("cuda") == ("features",)
    assert Cache().resolved("cuda").table == Uva(blocks=READERS)
