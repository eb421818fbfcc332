"""The feature cache on a GPU: bits, bytes by path, and hits equal to a CPU's."""

from dataclasses import replace

import pytest
import torch
from compose import counted, make, run

pytestmark = pytest.mark.gpu
ROW = 24 * 4  # bytes of a feature row of the small graph
MISSES = {"host": "host_copy", "uva": "zero_copy"}


def cached(graph, policy, ratio, table, device="cuda", **changes):
    settings = {"features": "cache", "features.policy": policy, "features.ratio": ratio}
    settings["sampler.pick"] = "floyd"  # the same draw on both
    if device == "cuda":
        settings["features.table"] = table
    return make(graph, "baseline", settings, "memory_io", device=device, **changes)


def hits(system, epoch=7):
    system.foresee(epoch)
    report = run(system, epoch)
    assert report.ok, report.reason
    assert report.unique_nodes * ROW == sum(
        v for (_, name, _), v in counted(report).items() if name == "feature_bytes"
    )
    return counted(report)


@pytest.mark.parametrize("table", MISSES)
@pytest.mark.parametrize("policy", ["degree", "random", "presc#2", "optimal"])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 1.0])
def test_hits_are_those_of_a_cpu(small_graph, policy, ratio, table):
    system = cached(small_graph, policy, ratio, table)
    assert system.check().ok
    there = hits(system)
    here = hits(cached(small_graph, policy, ratio, table, device="cpu"))
    for name in ("feature_bytes", "calls"):
        assert there["features", name, "cache"] == here["features", name, "cache"]
        assert there["features", name, MISSES[table]] == here["features", name, "host"]
    assert system.recheck(9) == ""
    exact = {
        r["ratio"]: r["hit_ratio"] for r in system.profile(7)["curves"] if r["policy"] == policy
    }
    asked = there["features", "feature_bytes", "cache"]
    asked += there["features", "feature_bytes", MISSES[table]]
    assert exact[ratio] == there["features", "feature_bytes", "cache"] / asked
    system.close()


@pytest.mark.parametrize("policy", ["degree", "presc#2", "optimal"])
def test_a_ranking_made_on_the_gpu_is_that_of_a_cpu(small_graph, policy):
    found = []
    for device in ("cuda", "cpu"):
        system = cached(small_graph, policy, 0.3, "uva", device=device)
        system.foresee(7)
        found.append(system.stages.store.ranking)
        system.close()
    assert not found[0].is_cuda and torch.equal(*found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 120])
@pytest.mark.parametrize("table", MISSES)
def test_rows_are_the_tables_bit_by_bit(small_graph, dtype, width, table):
    features = torch.randn(400, width, generator=torch.Generator().manual_seed(2)).to(dtype)
    system = cached(replace(small_graph, features=features), "degree", 0.3, table)
    assert system.check().ok
    for epoch in range(20):
        report = run(system, epoch)
        assert report.ok, report.reason
    system.close()


def test_the_cache_is_freed(small_graph):
    system = cached(small_graph, "degree", 1.0, "uva")
    run(system)
    held = torch.cuda.memory_allocated()
    system._last = None
    system.stages.store.close()
    assert held - torch.cuda.memory_allocated() >= small_graph.features.numel() * 4
    system.stages.sampler.close()
