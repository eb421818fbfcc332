"""WholeGraph's sampler without WholeGraph: conversion of its results."""

import numpy as np
import pytest
import torch

from gnnbench.core.cell import Until
from gnnbench.core.errors import UsageError
from gnnbench.kernels import rng
from gnnbench.kernels.reference import sampler as reference
from gnnbench.sampling.wholegraph import WholeGraphBatch, WholeGraphSampler, _EdgeLookup
from gnnbench.systems.runtime.find import find
from gnnbench.validation import gate

FANOUTS = (4, 3, 2)


def read(graph, drawn):
    """A batch of a WholeGraph result, with positions looked up as by the stage."""
    return WholeGraphBatch(0, drawn, _EdgeLookup(graph, torch.device("cpu")).positions)


def wholegraph_result(graph, seeds):
    """A batch in the form of ``multilayer_sample_without_replacement``, the input layer first."""
    batch = reference.sample(
        graph.indptr, graph.indices, seeds.int(), list(FANOUTS), pick="floyd",
        frontier="cumulative", key=rng.key(0, 0, "sample"), batch=0,
    )  # fmt: skip
    nodes = [*(b.src_nodes for b in batch.blocks), batch.seeds]
    return nodes, None, [b.indptr for b in batch.blocks], [b.indices for b in batch.blocks]


def test_converted_batches_pass_the_structural_check(small_graph):
    seeds = small_graph.train_idx[:50]
    drawn = wholegraph_result(small_graph, seeds)
    batch = read(small_graph, drawn)
    hops = batch.hops()
    gate.check_structure(small_graph, FANOUTS, "cumulative", seeds, hops)
    assert torch.equal(batch.seeds.long(), seeds)
    assert batch.input_nodes is drawn[0][0]
    for (dst, edges), hop in zip(batch.sizes().hops, hops, strict=True):
        assert np.array_equal(dst.numpy(), hop.dst) and edges == hop.edge_dst.size


def test_every_parallel_edge_has_its_own_position(small_graph):
    """With all in-neighbours, the positions are all of each row."""
    rows = torch.arange(small_graph.num_nodes)
    dst = torch.repeat_interleave(rows, small_graph.indptr.diff())
    drawn = ([small_graph.indices, rows], None, [small_graph.indptr], [torch.arange(dst.numel())])
    (hop,) = read(small_graph, drawn).hops()
    assert np.array_equal(np.sort(hop.positions), np.arange(small_graph.num_edges))
    assert np.array_equal(small_graph.indices.numpy()[hop.positions], hop.edge_src)


@pytest.mark.parametrize("fault", ["repeated", "no edge", "last"])
def test_wrong_results_are_caught(fault, small_graph):
    seeds = small_graph.train_idx[:50]
    nodes, _, offsets, columns = wholegraph_result(small_graph, seeds)
    last = columns[-1].clone()
    row = int((offsets[-1].diff() == 4).nonzero()[0])
    begin = int(offsets[-1][row])
    if fault == "repeated":
        last[begin : begin + 4] = last[begin]
    elif fault == "no edge":
        last[begin] = row  # the destination itself: no edge of it
    else:
        last[begin] = nodes[-2].numel() - 1
    with pytest.raises(gate.Fault):
        hops = read(small_graph, (nodes, None, offsets, [*columns[:-1], last])).hops()
        gate.check_structure(small_graph, FANOUTS, "cumulative", seeds, hops)


def test_wholegraph_samples_and_loads_only():
    wholegraph = find("wholegraph")
    assert "only samples and loads" in wholegraph.resolved({}, "cuda", Until.COMPUTE).unsupported
    assert "does not run on cpu" in wholegraph.resolved({}, "cpu", Until.SAMPLE).unsupported
    resolved = wholegraph.resolved({"sampler.memory": "chunked"}, "cuda", Until.SAMPLE)
    assert not resolved.unsupported
    assert resolved.recipe["sampler"] == {
        "name": "wholegraph", "pick": "wholegraph", "frontier": "cumulative", "memory": "chunked",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"'wholegraph'\.memory cannot be paper; it is continuous"):
        wholegraph.resolved({"sampler.memory": "paper"}, "cuda", Until.SAMPLE)


def test_missing_wholegraph_has_an_installation_hint():
    missing = WholeGraphSampler.missing("cuda")
    if missing is None:
        pytest.skip("WholeGraph is here")
    assert missing.reason and missing.fix
    assert WholeGraphSampler.devices == ("cuda",)
