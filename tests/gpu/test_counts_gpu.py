"""Counts on a GPU, by data path."""

import pytest
from compose import counted, make, run

pytestmark = pytest.mark.gpu
ROW = 24 * 4  # bytes of a feature row of the small graph
OFFSETS, ID = 16, 4  # bytes of a row's two offsets, and of a neighbour's id


def epoch(graph, settings, until="memory_io"):
    system = make(graph, "baseline", settings, until=until, device="cuda")
    report = system.check()
    assert report.ok, report.reason
    audit = run(system, 1)
    assert audit.ok, audit.reason
    assert system.recheck(2) == ""
    system.close()
    return audit


@pytest.mark.parametrize(
    ("features", "where"), [("host", "host_copy"), ("uva", "zero_copy"), ("gpu", "device")]
)
def test_feature_rows_are_counted_by_location(features, where, small_graph):
    audit = epoch(small_graph, {"features": features})
    assert counted(audit) == {
        ("features", "feature_bytes", where): audit.unique_nodes * ROW,
        ("features", "calls", where): 4,
    }


@pytest.mark.parametrize(("topology", "where"), [("uva", "zero_copy"), ("cpu", "host")])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_topology_outside_device_memory_is_counted(frontier, topology, where, small_graph):
    settings = {"sampler.topology": topology, "sampler.frontier": frontier}
    system = make(small_graph, "baseline", settings, until="sample", device="cuda")
    run(system, 0)
    audit = run(system, 1)
    assert audit.ok, audit.reason
    rows = edges = moved = 0
    for number, seeds in enumerate(system.order.batches(1, "cuda")):
        batch = system.stages.sampler.sampler.sample(seeds.int(), 1, number)
        hops = batch.sizes().hops
        rows += sum(dst.numel() for dst, _ in hops)
        edges += sum(n for _, n in hops)
        moved += sum(t.numel() * t.element_size() for t in batch.tensors())
    right = {
        ("sampler", "topology_bytes", where): rows * OFFSETS + edges * ID,
        ("sampler", "calls", where): 4,
    }
    if topology == "cpu":
        right["sampler", "block_bytes", "host_copy"] = moved
    assert counted(audit) == right
    system.close()


def test_topology_in_device_memory_is_not_counted(small_graph):
    assert epoch(small_graph, {}, until="sample").counts == []


@pytest.mark.parametrize("features", ["host", "uva", "gpu"])
@pytest.mark.parametrize("topology", ["gpu", "uva", "cpu"])
def test_losses_do_not_depend_on_the_location(topology, features, small_graph):
    settings = {"sampler.pick": "floyd", "sampler.topology": topology, "features": features}
    here = run(make(small_graph, settings={"sampler.pick": "floyd"}), 1)
    there = epoch(small_graph, settings, until="compute")
    assert there.sampled_edges == here.sampled_edges
    assert there.loss == pytest.approx(here.loss, rel=1e-3)


def test_copy_of_the_transferred_bytes_is_not_part_of_training(small_graph):
    """A run compares epochs with this copy if their rows are transferred to the GPU."""
    system = make(small_graph, "baseline", {"features": "uva"}, until="compute", device="cuda")
    report = run(system, 1)
    crossed = counted(report)["features", "feature_bytes", "zero_copy"]
    before = system.auditor.peak_bytes()
    ((_, name, where, seconds),) = system.diagnostics.copies({"host_copy": crossed}, report.batches)
    assert (name, where) == ("copy_time_s", "host_copy") and seconds > 0
    assert system.auditor.peak_bytes() == before
    assert run(system, 2).ok
    system.close()
