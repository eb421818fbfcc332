"""Buffers that take turns: how long their rows stay as they are."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.features.ring import RowRing
from gnnbench.features.spec import Cache, Host, Match, Window

SPECS = [Host(), Cache(policy="degree", ratio=0.3), Match(), Window(window=2)]


def job(graph, max_in_flight):
    return Job(Cell("e", "s", graph.name, ""), graph, Counts(), max_in_flight)


def test_a_buffer_is_handed_out_again_when_all_others_were():
    table = torch.zeros(9, 3, dtype=torch.float16)
    ring = RowRing(job(SimpleNamespace(name="t", features=table), 3), "cpu")
    first = [ring.rows(n) for n in (8, 4, 2)]
    assert [tuple(r.shape) for r in first] == [(8, 3), (4, 3), (2, 3)]
    assert len({r.data_ptr() for r in first}) == 3 and first[0].dtype == torch.float16
    assert ring.rows(10).data_ptr() == first[0].data_ptr()  # a quarter more than the first
    assert ring.rows(6).data_ptr() != first[1].data_ptr()  # too small for it
    assert ring.rows(0).shape == (0, 3)


def test_room_that_is_reserved_stays_where_it_is():
    """What is large enough is left alone, rows in it, too; what is new is 0."""
    table = torch.zeros(9, 3)
    ring = RowRing(job(SimpleNamespace(name="t", features=table), 2), "cpu")
    kept = ring.rows(8).fill_(7)
    buffers = ring.reserve(9)
    assert buffers[0].data_ptr() == kept.data_ptr() and bool((kept == 7).all())
    assert [b.shape[0] for b in buffers] == [10, 9] and not buffers[1].any()
    assert [ring.rows(n).data_ptr() for n in (9, 3)] == [buffers[n].data_ptr() for n in (1, 0)]
    assert [b.data_ptr() for b in ring.reserve(4)] == [b.data_ptr() for b in buffers]


@pytest.mark.parametrize("max_in_flight", [1, 2, 5])
@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_max_in_flight_results_stay_valid(spec, max_in_flight, small_graph):
    store = spec.resolved("cpu").build(job(small_graph, max_in_flight))
    store.prepare(lambda epoch: iter(()))
    draw, valid = torch.Generator().manual_seed(max_in_flight), []
    for step in range(60):
        n = int(torch.randint(0, 400, (), generator=draw))
        ids = torch.randperm(400, generator=draw)[:n].int()
        if len(valid) == max_in_flight:
            old, rows = valid.pop(0)
            assert torch.equal(rows, small_graph.features[old.long()]), step
        valid.append((ids, store.load(SimpleNamespace(input_nodes=ids))))


def test_a_store_before_another_asks_it_for_one_result(small_graph):
    cached = Cache().resolved("cpu").build(job(small_graph, 4))
    assert len(cached._ring._buffers) == 4 and len(cached._fallback._ring._buffers) == 1
