"""The feature cache on a GPU: rows bit by bit, bytes by path, and the same hits as on a CPU."""

from dataclasses import replace

import pytest
import torch
from compose import counted, make, run

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.features.cache import StaticCache
from gnnbench.features.ranking import ranked_for
from gnnbench.features.spec import Uva
from gnnbench.kernels.access import ACCESSES

pytestmark = pytest.mark.gpu
ROW = 24 * 4  # bytes of a feature row of the small graph
MISSES = {"host": "host_copy", "uva": "zero_copy"}


def cached(graph, policy, ratio, table, device="cuda", **changes):
    settings = {"features": "cache", "features.policy": policy, "features.ratio": ratio}
    settings["sampler.pick"] = "floyd"  # the same samples on both devices
    if device == "cuda":
        settings["features.table"] = table
    return make(graph, "baseline", settings, "memory_io", device=device, **changes)


def hits(system, epoch=7):
    system.foresee((epoch,))
    report = run(system, epoch)
    assert report.ok, report.reason
    assert report.unique_nodes * ROW == sum(
        v for (_, name, _), v in counted(report).items() if name == "feature_bytes"
    )
    return counted(report)


@pytest.mark.parametrize("table", MISSES)
@pytest.mark.parametrize("policy", ["degree", "random", "presc#2", "optimal"])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 1.0])
def test_hits_equal_those_of_a_cpu(small_graph, policy, ratio, table):
    system = cached(small_graph, policy, ratio, table)
    assert system.check().ok
    gpu_hits = hits(system)
    cpu_hits = hits(cached(small_graph, policy, ratio, table, device="cpu"))
    for name in ("feature_bytes", "calls"):
        assert gpu_hits["features", name, "cache"] == cpu_hits["features", name, "cache"]
        assert gpu_hits["features", name, MISSES[table]] == cpu_hits["features", name, "host"]
    assert system.recheck(9) == ""
    exact = {
        r["ratio"]: r["hit_ratio"] for r in system.profile(7)["curves"] if r["policy"] == policy
    }
    requested_bytes = gpu_hits["features", "feature_bytes", "cache"]
    requested_bytes += gpu_hits["features", "feature_bytes", MISSES[table]]
    assert exact[ratio] == gpu_hits["features", "feature_bytes", "cache"] / requested_bytes
    system.close()


@pytest.mark.parametrize("table", MISSES)
@pytest.mark.parametrize("policy", ["random", "degree", "presc#2", "optimal"])
@pytest.mark.parametrize("in_host_memory", [True, False])
def test_ranking_on_the_gpu_equals_that_of_a_cpu(
    monkeypatch, small_graph, policy, table, in_host_memory
):
    """Each node has the same slot or none, and each slot has the row of its node; also if the GPU
    has no memory to fill the cache from ids on the device."""
    places = []
    if not in_host_memory:
        monkeypatch.setattr(StaticCache, "_has_memory_to_fill", lambda _: False)

    def spied(*given):
        actual = ranked_for(*given)
        places.append(actual[0].device.type)
        return actual

    monkeypatch.setattr("gnnbench.features.cache.ranked_for", spied)
    actual = []
    for device in ("cuda", "cpu"):
        system = cached(small_graph, policy, 0.3, table, device=device)
        system.foresee((7,))
        store = system.stages.store
        slots = store._lookup.find(torch.arange(400, device=device)).cpu()
        nodes = torch.nonzero(slots >= 0).squeeze(1)
        assert nodes.numel() == 120
        assert torch.equal(store._cache.cpu()[slots[nodes].long()], small_graph.features[nodes])
        actual.append(slots)
        system.close()
    assert torch.equal(*actual)
    assert places == ["cpu" if policy == "random" else "cuda", "cpu"]


def test_the_host_waits_once_for_the_missed_ids(monkeypatch, small_graph):
    """Every other call only enqueues work."""
    system = cached(small_graph, "degree", 0.3, "host")
    store, waits = system.stages.store, []
    to_host = store._to_host

    def waiting(tensor):
        waits.append(tensor.numel())
        torch.cuda.set_sync_debug_mode("default")
        try:
            return to_host(tensor)
        finally:
            torch.cuda.set_sync_debug_mode("error")

    monkeypatch.setattr(store, "_to_host", waiting)
    ids = torch.arange(399, 0, -3, dtype=torch.int32, device="cuda")
    store.fetch(ids)
    waits.clear()
    torch.cuda.set_sync_debug_mode("error")
    try:
        rows = store.fetch(ids)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(rows.cpu(), small_graph.features[ids.cpu().long()])
    assert waits == [ids.numel() + 1]
    system.close()


@pytest.mark.parametrize("memory", ["registered", "vmm"])
@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("where", ["cuda", "cpu"])
def test_cache_rows_are_copied_in_chunks_for_every_store(
    monkeypatch, small_graph, memory, access, ids, where
):
    monkeypatch.setattr("gnnbench.features.base.CHUNK_BYTES", 7 * ROW)
    own = replace(small_graph, features=small_graph.features.clone())
    spec = Uva(access=access, memory=memory).resolved("cuda")
    store = spec.build(Job(Cell("e", "s", "g", "", device="cuda"), own, Counts()))
    own.features.zero_()  # the locked copy is read
    for wanted in ([399, 0, 5, 5, 17, *range(100, 123)], [4], []):
        at = torch.tensor(wanted, dtype=ids, device=where)
        out = torch.full((len(wanted), 24), float("nan"), device="cuda")
        store.copy_rows(at, out)
        assert torch.equal(out.cpu(), small_graph.features[at.cpu().long()])
    out = torch.full((400, 24), float("nan"), device="cuda")
    store.copy_all(out)
    assert torch.equal(out.cpu(), small_graph.features)
    assert not store.job.counts.rows()
    store.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 120])
@pytest.mark.parametrize("table", MISSES)
def test_rows_are_identical_to_the_table(small_graph, dtype, width, table):
    features = torch.randn(400, width, generator=torch.Generator().manual_seed(2)).to(dtype)
    system = cached(replace(small_graph, features=features), "degree", 0.3, table)
    assert system.check().ok
    for epoch in range(20):
        report = run(system, epoch)
        assert report.ok, report.reason
    system.close()


def test_cache_is_freed(small_graph):
    system = cached(small_graph, "degree", 1.0, "uva")
    run(system)
    allocated_bytes = torch.cuda.memory_allocated()
    system.recorder.clear()
    system.stages.store.close()
    assert allocated_bytes - torch.cuda.memory_allocated() >= small_graph.features.numel() * 4
    system.stages.sampler.close()
