"""Marks of cached nodes on a batch, and a cache that loads by them."""

import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch
from gnnbench.features.marks import mark, marks_of, split
from gnnbench.features.spec import Cache
from gnnbench.kernels.lookup import IdLookup


def batch_of(*ids):
    return MiniBatch(torch.tensor(ids, dtype=torch.int32), [], 0)


def test_marks_say_which_nodes_are_cached_and_where():
    lookup, batch = IdLookup(10), batch_of(4, 7, 2, 9)
    lookup.remember(torch.tensor([9, 7]))
    assert marks_of(batch) is None
    mark(batch, lookup)
    marks = marks_of(batch.to("cpu"))
    assert marks.missed.tolist() == [4, 2] and marks.missed_at.tolist() == [0, 2]
    assert marks.slots.tolist() == [1, 0] and marks.slots_at.tolist() == [1, 3]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("ids", [[], [1], [5], [3, 1, 4, 5, 0, 9, 2, 6]])
@pytest.mark.parametrize("cached", [[], [3, 4, 9], list(range(10))])
def test_ids_are_split_in_order_with_one_copy_to_the_host(ids, cached, dtype):
    lookup, wanted = IdLookup(10), torch.tensor(ids, dtype=dtype)
    lookup.remember(torch.tensor(cached, dtype=torch.int64))
    copies = []

    def to_host(tensor):
        copies.append(tensor)
        return tensor.clone()

    for marks in (split(wanted, lookup), split(wanted, lookup, to_host)):
        assert marks.missed.tolist() == [i for i in ids if i not in cached]
        assert marks.missed_at.tolist() == [p for p, i in enumerate(ids) if i not in cached]
        assert marks.slots.tolist() == [cached.index(i) for i in ids if i in cached]
        assert marks.slots_at.tolist() == [p for p, i in enumerate(ids) if i in cached]
        assert marks.missed.dtype == dtype
        assert marks.missed_at.dtype == marks.slots.dtype == marks.slots_at.dtype == torch.int32
    assert len(copies) == 1


def cache(graph, ratio):
    job = Job(Cell("e", "s", "g", ""), graph, Counts())
    store = Cache(policy="degree", ratio=ratio).resolved("cpu").build(job)
    store.prepare(lambda epoch: [])
    return store


def test_cached_ids_are_in_the_order_of_their_slots(small_graph):
    store = cache(small_graph, 5 / 400)
    ids = store.cached_ids
    assert torch.equal(store.cached()[0], small_graph.features[ids])
    whole = cache(small_graph, 1.0)
    assert whole.cached_ids.tolist() == list(range(400))


def test_a_cache_takes_marks_of_its_first_nodes_without_a_look_up(small_graph, monkeypatch):
    store, smaller = cache(small_graph, 0.5), IdLookup(400)
    smaller.remember(store.cached_ids[:100])
    ids = [*store.cached_ids[90:110].tolist(), *range(40, 60)]
    batch = batch_of(*ids)
    expected = small_graph.features[torch.tensor(ids)]
    mark(batch, smaller)
    hits = marks_of(batch).slots.numel()
    assert hits < int((store.cached()[1].find(torch.tensor(ids)) >= 0).sum())
    rows = store.load(batch)  # looked up: this cache has more nodes
    assert torch.equal(rows, expected)
    store.job.counts.clear()
    store.takes_marks = True
    monkeypatch.setattr(IdLookup, "find", None)
    assert torch.equal(store.load(batch), expected)
    counted = {(name, where): n for _, name, where, n in store.job.counts.rows()}
    assert counted["feature_bytes", "cache"] == hits * 96
    assert counted["feature_bytes", "host"] == (40 - hits) * 96
