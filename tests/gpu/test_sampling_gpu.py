"""Sampling cells on a GPU: the epoch's times, the look inside, WholeGraph where it is installed."""

import gc

import pytest
import torch

from gnnbench.cell import NO_MODEL, Cell
from gnnbench.data.prepare import load_dataset
from gnnbench.systems.baseline import Baseline
from gnnbench.systems.profile import spanned_bytes
from gnnbench.systems.wholegraph import WholeGraph

pytestmark = pytest.mark.gpu

SAMPLERS = ["hop-by-hop", "gnnlab", "fused-map", "pgsampler", "dgl-fusion", "fastsample"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return load_dataset("rmat@14", root=tmp_path_factory.mktemp("rmat"))


def make(cls, graph, **options):
    cell = Cell(
        "test", cls.name, graph.name, NO_MODEL, device="cuda", batch_size=512, max_batches=12,
        options=options,
    )  # fmt: skip
    system = cls(cell, graph)
    system.setup()
    return system


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_epoch_and_the_look_inside(sampler, graph):
    system = make(Baseline, graph, sampler=sampler)
    report = system.check()
    assert report.ok, report.reason
    system.run_epoch(0)
    sample = system.run_epoch(1)
    assert sample.ok, sample.reason
    assert sample.loss is None and set(sample.phases_s) == {"sample"}
    assert 0 < sample.device_s <= sample.phases_s["sample"] <= sample.wall_s
    found = system.profile(9)
    whole, *stages = found["stages"]
    assert whole["device_s"] > 0 and whole["block_bytes"] > 0 and whole["extra_bytes"] >= 0
    assert stages and all(row["device_s"] >= 0 for row in stages)
    assert {"pick"} <= {row["stage"] for row in stages}
    for row in found["kernels"]:  # none where the profiling interface is not there
        assert row["device_s"] > 0 and row["calls"] > 0
    assert system.recheck(17) == ""


def test_the_order_is_no_memory_of_the_sampler(graph):
    """The baseline keeps nothing between batches: its peak is within its call."""
    gc.collect()
    of_other_tests = torch.cuda.memory_allocated()
    system = make(Baseline, graph, sampler="hop-by-hop")
    system.run_epoch(0)
    whole = system.profile(9)["stages"][0]
    seeds = system.order.batches(0, "cuda")[0].to(graph.indices.dtype)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    drawn = system.sample(seeds, 0, 0)
    torch.cuda.synchronize()
    call = torch.cuda.max_memory_allocated() - before - spanned_bytes(system.block_tensors(drawn))
    assert whole["extra_bytes"] - of_other_tests == pytest.approx(call, rel=0.2, abs=1 << 16)


def test_wholegraph(graph):
    if missing := WholeGraph.missing("cuda"):
        pytest.skip(f"wholegraph: {missing.reason}; {missing.fix}")
    system = make(WholeGraph, graph)
    try:
        report = system.check()
        assert report.ok, report.reason
        sample = system.run_epoch(0)
        assert sample.ok, sample.reason
        ours = make(Baseline, graph).run_epoch(0)
        assert (sample.batches, sample.seeds) == (ours.batches, ours.seeds)
        assert sample.sampled_edges == pytest.approx(ours.sampled_edges, rel=0.02)
        assert system.recheck(17) == ""
        (whole,) = system.profile(9)["stages"]
        assert whole["device_s"] > 0 and whole["extra_bytes"] >= 0
    finally:
        system.close()
