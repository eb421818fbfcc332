"""Pieces of memory that are not to be had: a sentence says what and what to do."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import GpuMemoryError, HostMemoryError, UnsupportedError
from gnnbench.core.job import Job
from gnnbench.features.allocation import allocating
from gnnbench.features.spec import Cache

GIB = 1 << 30


def build(spec, nodes, width=64):
    """A store over a table; one of wide rows takes no memory."""
    some = min(width, 64)
    few = torch.arange(nodes * some, dtype=torch.float32).view(-1, some)
    table = few if some == width else few[:, :1].expand(nodes, width)
    graph = SimpleNamespace(name="t", features=table, num_nodes=nodes)
    return spec.resolved("cpu").build(Job(Cell("e", "s", "t", ""), graph, Counts()))


def test_a_full_gpu_and_a_full_host_say_what_to_change():
    words = r"^a table takes 3 GiB, more than the {} has free; take less$"
    with (
        pytest.raises(GpuMemoryError, match=words.format("GPU")),
        allocating("a table", 3 * GIB, "take less"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB.")
    with (
        pytest.raises(HostMemoryError, match=words.format("host")),
        allocating("a table", 3 * GIB, "take less"),
    ):
        torch.empty(1 << 60, dtype=torch.uint8)
    other = pytest.raises(RuntimeError, match="of another kind")
    with other, allocating("a table", 3, "take less"):
        raise RuntimeError("of another kind")


@pytest.mark.parametrize("policy", ["random", "optimal", "sieve"])
def test_a_cache_that_does_not_fit(policy):
    words = r"^a feature cache of ratio 0.5 takes .* GiB, more than the host has free; give a sma"
    made = build(Cache(policy=policy, ratio=0.5), 1000, 1 << 46)
    with pytest.raises(HostMemoryError, match=words):
        made.prepare(lambda epoch: [])


def test_a_stated_limit_is_kept():
    words = r"^a feature cache of ratio 0.5 takes 0\.00012 GiB, more than memory_gib=0\.0001; give"
    with pytest.raises(UnsupportedError, match=words):
        build(Cache(policy="random", ratio=0.5, memory_gib=1e-4), 1008)
    within = build(Cache(policy="random", ratio=0.4, memory_gib=1e-4), 1000)
    assert within.prepare(lambda epoch: []) and within._cache.shape == (400, 64)


@pytest.mark.parametrize("policy", ["random", "sieve"])
def test_auto_takes_what_is_stated_on_a_cpu(policy):
    words = (
        r"ratio=auto is derived from a GPU's memory; on a CPU give memory_gib above 0, or a ratio"
    )
    with pytest.raises(UnsupportedError, match=words):
        Cache(ratio="auto").resolved("cpu")
    assert Cache(ratio="auto").resolved("cuda").ratio == "auto"
    rows = 300
    made = build(Cache(policy=policy, ratio="auto", memory_gib=rows * 256 / GIB), 1000)
    assert made._cache.shape == (0, 64)  # until it is known
    spent = made.fit(lambda: pytest.fail("a CPU has no peak to be measured"))
    assert {m.name: v for m, v in spent.items()} == {"cache_ratio": 0.3}
    measures = {m.name: v for m, v in made.prepare(lambda epoch: []).items()}
    assert measures["cache_rows"] == rows and made._cache.shape == (rows, 64)
    ids = torch.arange(0, 1000, 7)
    for _ in range(2):
        assert torch.equal(made.fetch(ids), made.job.graph.features[ids])


def test_a_given_ratio_derives_nothing():
    made = build(Cache(policy="random", ratio=0.3), 1000)
    assert made.fit(lambda: pytest.fail("nothing is to be measured")) == {}


def test_what_is_left_on_a_gpu(monkeypatch):
    """Free and reserved by torch, less the peak of an epoch and the margin; the driver is faked."""
    made = build(Cache(policy="random", ratio="auto", memory_gib=1), 1000)
    free, reserved, peak = 2 * GIB, 3 * GIB, 4 * GIB
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 99 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved)
    made.job.__dict__["device"] = SimpleNamespace(type="cuda")
    spent = {m.name: v for m, v in made.fit(lambda: peak).items()}
    assert spent.keys() == {"cache_ratio", "uncached_peak_bytes", "uncached_time_s"}
    assert (spent["cache_ratio"], spent["uncached_peak_bytes"]) == (0, peak)  # all is margin
    peak = 2 * GIB
    assert {m.name: v for m, v in made.fit(lambda: peak).items()}["cache_ratio"] == 1


@pytest.mark.parametrize(("short", "room"), [(0, True), (1, False)])
def test_whether_a_rankings_ids_have_room_beside_the_rows(monkeypatch, short, room):
    """The rows that are not there yet and 512 MiB to fill them with; of the driver alone."""
    made = build(Cache(policy="random", ratio=0.5), 1000)
    free = 500 * 256 + (1 << 29) - short
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 99 * GIB))
    assert made._has_memory_to_fill() is room
    made.prepare(lambda epoch: [])
    assert made._has_memory_to_fill()  # the rows are there
