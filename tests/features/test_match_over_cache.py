"""Match over a static cache: which rows come from where, in a single pass and by masks."""

from types import SimpleNamespace

import pytest
import torch
from stores import Locked, batch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.core.job import Job
from gnnbench.features import Cache, Match, Uva, single_pass, uva
from gnnbench.features.cache import StaticCache
from gnnbench.features.match import MatchStore
from gnnbench.features.policies.policy import Policy
from gnnbench.features.sieve import SieveCache
from gnnbench.features.single_pass import CachedSinglePassGather
from gnnbench.kernels.access import ACCESSES, PAGE_ORDERED, READERS
from gnnbench.kernels.reference import features as reference

NODES, WIDTH = 40, 3
TABLE = torch.arange(float(NODES))[:, None].repeat(1, WIDTH)


@pytest.fixture
def on_cpu(monkeypatch):
    """Stands the kernels of a GPU in by the slow reference; returns their calls."""
    calls = []

    def gather_over_cache(table, last, cache, ids, hits, blocks):
        assert blocks == READERS
        calls.append(ids.tolist())
        rows, counted = reference.gather_over_cache(table, last, cache, ids)
        hits += torch.tensor(counted)
        return rows

    def gather_once(table, batches, distinct, out):
        return out.copy_(table[torch.cat(batches).long()])

    monkeypatch.setattr(uva, "LockedTensor", Locked)
    monkeypatch.setattr(uva, "gather_once", gather_once)
    monkeypatch.setattr(uva, "gather_zero_copy", lambda table, ids, *_, **__: table[ids.long()])
    monkeypatch.setattr(single_pass, "gather_over_cache", gather_over_cache)
    return calls


def store_over(access=PAGE_ORDERED, ratio=0.25, cache=StaticCache, table=TABLE):
    graph = SimpleNamespace(
        name="t", features=table, num_nodes=NODES, train_idx=torch.arange(NODES),
        indices=torch.arange(NODES, dtype=torch.int32),
    )  # fmt: skip
    job = Job(Cell("e", "s", "t", ""), graph, Counts())
    below = Uva(access=access).build(job)
    if cache is StaticCache:
        cached = StaticCache(job, Policy.named("degree"), ratio, 0, below)
    else:
        cached = SieveCache(job, ratio, 0, below)
    store = MatchStore(job, cached)
    store.prepare(lambda epoch: iter([]))
    return store


def counted(store, name="feature_bytes", unit=WIDTH * 4):
    return {where: n // unit for _, what, where, n in store.job.counts.rows() if what == name}


def test_rows_come_from_the_last_batch_then_the_cache_then_the_table(on_cpu):
    """Nodes 0 to 9 are cached; each source is marked, so that a row says where it came from."""
    store = store_over()
    store._fallback.cached()[0].add_(100)
    rows = store.load(batch([3, 20, 21]))
    assert rows[:, 0].tolist() == [103, 20, 21]
    rows.add_(1000)
    assert store.load(batch([20, 4, 3, 30]))[:, 0].tolist() == [1020, 104, 1103, 30]
    assert on_cpu == [[3, 20, 21], [20, 4, 3, 30]]
    assert counted(store) == {"reused": 2, "cache": 2, "zero_copy": 3}
    assert counted(store, "calls", 1) == {"reused": 2, "cache": 2, "zero_copy": 2}
    store.job.counts.clear()
    assert store.job.counts.rows() == []
    store.close()


def test_an_epoch_begins_with_cached_rows_alone(on_cpu):
    store = store_over()
    store.load(batch([3, 20]))
    store.forget()
    store.job.counts.clear()
    assert torch.equal(store.load(batch([20, 3])), TABLE[[20, 3]])
    assert counted(store) == {"reused": 0, "cache": 1, "zero_copy": 1}


@pytest.mark.parametrize("ratio", [0.0, 0.07, 0.5, 1.0])
def test_counters_equal_those_of_the_masks(on_cpu, ratio):
    """Rows and counters of 60 batches, compared with the composition of host-separated masks."""
    store, masked = store_over(ratio=ratio), store_over(ratio=ratio)
    masked._single_pass = masked._fallback._single_pass = None
    draws = torch.Generator().manual_seed(2)
    for step in range(60):
        n = int(torch.randint(0, NODES, (1,), generator=draws))
        ids = torch.randperm(NODES, generator=draws)[:n].tolist()
        if step % 20 == 19:
            store.forget()
            masked.forget()
        for one in (store, masked):
            assert torch.equal(one.load(batch(ids)), TABLE[ids])
    rows, expected = counted(store), counted(masked)
    assert {k: v for k, v in rows.items() if v} == {k: v for k, v in expected.items() if v}
    assert sum(rows.values()) > 0 and len(on_cpu) == 60


@pytest.mark.parametrize("access", [a for a in ACCESSES if a != PAGE_ORDERED])
def test_other_access_and_caches_are_separated_by_masks(on_cpu, access):
    for store in (store_over(access), store_over(cache=SieveCache)):
        assert not isinstance(store._single_pass, CachedSinglePassGather)
        for ids in [1, 20], [20, 2, 30]:
            assert torch.equal(store.load(batch(ids)), TABLE[ids])
    assert on_cpu == []


def test_the_published_variant_is_separated_by_masks():
    spec = Match(table=Cache(policy="random", table="host"))
    job = Job(Cell("e", "s", "t", ""), SimpleNamespace(features=TABLE, num_nodes=NODES), Counts())
    assert spec.build(job)._single_pass is None


def test_correct_after_a_refused_batch(on_cpu, monkeypatch):
    """Slots that the refused batch may have set have no rows."""
    store = store_over()
    store.load(batch([1, 20]))
    right = single_pass.gather_over_cache

    def refuse(table, last, cache, ids, hits, blocks):
        last[1].slots[20] = 1
        last[1].generations[20] = last[1].generation + 1
        raise UsageError("no memory")

    monkeypatch.setattr(single_pass, "gather_over_cache", refuse)
    with pytest.raises(UsageError):
        store.load(batch([30, 20]))
    monkeypatch.setattr(single_pass, "gather_over_cache", right)
    assert torch.equal(store.load(batch([20, 1])), TABLE[[20, 1]])
