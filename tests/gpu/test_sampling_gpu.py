"""Sampling cells on a GPU: epoch times, the inspection, and WholeGraph if it is installed."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import compose
import pytest
import torch

from gnnbench.datasets.prepare import load_dataset
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.profile import spanned_bytes

pytestmark = pytest.mark.gpu

SAMPLERS = [
    "hop-by-hop", "gnnlab", "fused-map-by-hop", "fused-map", "pgsampler", "dgl-fusion",
    "fastsample",
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("rmat")


@pytest.fixture(scope="module")
def graph(root):
    return load_dataset("rmat@14", root=root)


def make(graph, system="baseline", **settings):
    return compose.make(
        graph, system, settings, until="sample", device="cuda", batch_size=512, max_batches=12,
        fanouts=(15, 10, 5),
    )  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_epoch_and_inspection(sampler, graph):
    system = make(graph, sampler=sampler)
    report = system.check()
    assert report.ok, report.reason
    compose.run(system, 0)
    sweep = compose.timed(system, 1)
    audit = system.audit(1)
    assert audit.ok, audit.reason
    assert audit.loss is None
    assert set(sweep.busy) == {"sample"}
    assert 0 < sweep.busy["sample"] <= sweep.wall
    measured = system.profile(9)
    whole, *stages = measured["stages"]
    assert whole["device_s"] > 0 and whole["block_bytes"] > 0 and whole["extra_bytes"] >= 0
    assert stages and all(row["device_s"] >= 0 for row in stages)
    assert {"pick"} <= {row["stage"] for row in stages}
    for row in measured["kernels"]:  # none if the profiling interface is not available
        assert row["device_s"] > 0 and row["calls"] > 0
    assert system.recheck(17) == ""


def memory_of_a_call(root):
    """Memory of the baseline's sampler by the inspection, and the peak of one call."""
    graph = load_dataset("rmat@14", root=root)
    system = make(graph, sampler="hop-by-hop")
    compose.run(system, 0)
    whole = system.profile(9)["stages"][0]
    seeds = system.order.batches(0, "cuda")[0].to(graph.indices.dtype)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    batch = system.stages.sampler.sample(seeds, 0, 0)
    torch.cuda.synchronize()
    call = torch.cuda.max_memory_allocated() - before - spanned_bytes(batch.tensors())
    return whole["extra_bytes"], call


def test_order_does_not_count_as_memory_of_the_sampler(root):
    """The baseline keeps nothing between batches, so its peak is within its call.

    Runs in a separate process: all device memory except the graph and the order counts as the
    sampler's, and memory of earlier tests may be released at any time.
    """
    fresh = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with fresh as process:
        extra, call = process.submit(memory_of_a_call, root).result(timeout=240)
    assert extra == pytest.approx(call, rel=0.2, abs=1 << 16)


def test_inspection_times_the_device_of_the_cell(graph, monkeypatch):
    """Its events are recorded on the cell's device, for any current device."""
    system = make(graph)
    streams = []
    right = torch.cuda.Event.record

    def noting(event, stream=None):
        streams.append(stream)
        return right(event, stream) if stream is not None else right(event)

    monkeypatch.setattr(torch.cuda.Event, "record", noting)
    system.profile(9)
    assert streams
    assert all(s is not None and s.device == system.job.device for s in streams)


def test_wholegraph_cell(graph):
    if missing := find("wholegraph").missing("cuda"):
        pytest.skip(f"wholegraph: {missing.reason}; {missing.fix}")
    system = make(graph, "wholegraph")
    try:
        report = system.check()
        assert report.ok, report.reason
        audit = compose.run(system, 0)
        assert audit.ok, audit.reason
        ours = compose.run(make(graph), 0)
        assert (audit.batches, audit.seeds) == (ours.batches, ours.seeds)
        assert audit.sampled_edges == pytest.approx(ours.sampled_edges, rel=0.02)
        assert system.recheck(17) == ""
        (whole,) = system.profile(9)["stages"]
        assert whole["device_s"] > 0 and whole["extra_bytes"] >= 0
    finally:
        system.close()
