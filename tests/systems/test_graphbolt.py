"""The system ``graphbolt``; most tests need a DGL with GraphBolt for this torch."""

from dataclasses import replace

import pytest
import torch
from compose import counted, make, run

from gnnbench.core import registry
from gnnbench.core.cell import Until
from gnnbench.kernels.dgl_import import graphbolt_missing
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime.find import find

needs_graphbolt = pytest.mark.skipif(
    graphbolt_missing("cpu") is not None, reason="no DGL with GraphBolt for this torch"
)


def test_missing_library_has_an_installation_hint():
    missing = find("graphbolt").missing("cpu", Until.SAMPLE)
    assert missing == graphbolt_missing("cpu")
    if missing is not None:
        assert missing.reason and missing.fix


def test_placement_of_graph_and_features():
    recipe = registry.load("system", "graphbolt")
    on_gpu, on_cpu = recipe.resolved("cuda"), recipe.resolved("cpu")
    assert (on_gpu.sampler.topology, on_cpu.sampler.topology) == ("gpu", "cpu")
    assert (recipe.shared("cuda"), recipe.shared("cpu")) == (("features",), ())
    changed = recipe.changed({"sampler.topology": "uva", "features": "gpu", "schedule": "prefetch"})
    assert changed.resolved("cuda").sampler.topology == "uva"


@needs_graphbolt
@pytest.mark.parametrize("id_type", [torch.int32, torch.int64])
@pytest.mark.parametrize("until", ["sample", "memory_io", "compute"])
def test_graphbolt_passes_the_gate_and_runs(until, id_type, small_graph, one_thread):
    graph = replace(small_graph, indices=small_graph.indices.to(id_type))
    system = make(graph, "graphbolt", until=until, batch_size=20)
    gate = system.check()
    assert gate.ok and gate.verified and gate.law == "without-replacement", gate.reason
    for epoch in range(3):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert report.batches == 10
        if until != "sample":
            key = ("features", "feature_bytes", "host")
            assert counted(report)[key] == report.unique_nodes * small_graph.feature_dim * 4
    assert system.verify(5, Timeline.on("cpu")).ok
    assert system.recheck(7) == ""
    system.close()


@needs_graphbolt
def test_graphbolt_with_all_neighbours_equals_the_baseline(small_graph, one_thread):
    """The edges are equal, so losses are equal."""
    results = []
    for name in ("baseline", "graphbolt"):
        system = make(small_graph, name, batch_size=20, fanouts=(-1, -1))
        reports = [run(system, epoch) for epoch in range(3)]
        assert all(r.ok for r in reports), [r.reason for r in reports]
        results.append([(r.sampled_edges, r.unique_nodes, r.loss) for r in reports])
    for ours, theirs in zip(*results, strict=True):
        assert theirs == pytest.approx(ours, rel=1e-4)


@needs_graphbolt
@pytest.mark.parametrize("mix", ["sampler=fused-map", "features=host", "aggregate=csr",
                                 "schedule=prefetch"])  # fmt: skip
def test_graphbolt_stages_work_with_built_in_stages(mix, small_graph, one_thread):
    system = make(small_graph, "graphbolt", dict([mix.split("=")]), batch_size=20)
    assert system.check().ok
    assert run(system).ok
    system.close()
