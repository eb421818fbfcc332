"""PyG's loader with worker processes: batches, audits and clean shutdown."""

import multiprocessing
from dataclasses import replace

import compose
import pytest
import torch

from gnnbench.kernels import pyg_import
from gnnbench.sampling import pyg


@pytest.fixture
def make(small_graph):
    systems = []

    def build(workers, extension="pyg-lib", **changes):
        settings = {"sampler.workers": workers, "sampler.extension": extension}
        systems.append(compose.make(small_graph, "pyg", settings, **changes))
        return systems[-1]

    yield build
    for system in systems:
        system.close()


@pytest.mark.parametrize("extension", pyg_import.EXTENSIONS)
@pytest.mark.parametrize("workers", [1, 3])
def test_gate_and_epochs(make, workers, extension):
    system = make(workers, extension)
    report = system.check()
    assert report.ok, report.reason
    losses = []
    for epoch in range(6):
        audit = compose.run(system, epoch)
        assert audit.ok, audit.reason
        assert (audit.batches, audit.seeds) == (4, 200)
        losses.append(audit.loss)
    assert losses[-1] < losses[0]
    assert system.recheck(9) == ""


def test_worker_processes_live_until_close(make):
    """The requested number of workers runs in every epoch and ends with the system."""
    before = set(multiprocessing.active_children())
    system = make(2)
    compose.run(system, 0)
    workers = set(multiprocessing.active_children()) - before
    assert len(workers) == 2
    compose.run(system, 1)
    assert set(multiprocessing.active_children()) - before == workers
    system.close()
    assert set(multiprocessing.active_children()) <= before
    system.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_edge_index_is_built_once(make, workers, monkeypatch):
    """It has the order of the graph, is built in chunks, and is used by PyG's sampler."""
    monkeypatch.setattr(pyg, "NODES_PER_CHUNK", 7)
    sampler = make(workers, until="sample").stages.sampler
    graph, data = sampler.job.graph, sampler.loader.data
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    assert data.edge_index.tolist() == [graph.indices.tolist(), dst.tolist()]
    assert data.edge_index.is_shared() == (workers > 0)
    read = sampler.loader.node_sampler
    assert read.row.data_ptr() == data.edge_index.data_ptr()
    assert read.colptr.tolist() == graph.indptr.tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_edge_index_of_a_graph_without_edges(small_graph, shared):
    bare = {"indptr": torch.zeros(4, dtype=torch.int64), "indices": small_graph.indices[:0]}
    graph = replace(small_graph, **bare)
    assert pyg._edge_index(graph, shared).shape == (2, 0)


def test_batches_come_in_the_order_of_the_epoch(make):
    sampler = make(2, until="sample").stages.sampler
    seeds = list(torch.randperm(200).split(16))
    sampler.expect(5, seeds)
    for number, one in enumerate(seeds):
        batch = sampler.sample(one, 5, number)
        assert batch.number == number
        assert batch.seeds.tolist() == one.tolist()
        assert not batch.sizes().seeds.is_shared()


def test_batch_out_of_order(make):
    """Sampled in the middle of an epoch; the next epoch passes its audit."""
    system = make(2, until="sample")
    sampler = system.stages.sampler
    seeds = list(torch.arange(200).split(16))
    sampler.expect(0, seeds)
    for number in (0, 1):
        sampler.sample(seeds[number], 0, number)
    alone = torch.tensor([7, 3])
    assert sampler.sample(alone, 0, 2).seeds.tolist() == [7, 3]
    assert sampler.sample(seeds[2], 0, 2).seeds.tolist() == seeds[2].tolist()
    assert sampler.sample(seeds[3], 0, 3).seeds.tolist() == seeds[3].tolist()
    report = compose.run(system, 1)
    assert report.ok, report.reason


def test_wrong_seeds_are_caught(make, monkeypatch):
    system = make(1)
    batches = pyg.EpochBatchSampler.__iter__
    wrong = lambda self: (ids[::-1][1:] for ids in batches(self))  # noqa: E731
    monkeypatch.setattr(pyg.EpochBatchSampler, "__iter__", wrong)
    report = compose.run(system, 0)
    assert not report.ok and "drawn for other seeds than its own" in report.reason
