"""Cells without a model: an epoch samples, is recounted, and does nothing else."""

import pytest
import torch

from gnnbench.cell import NO_MODEL, Cell
from gnnbench.runner import audit
from gnnbench.systems import registry

SYSTEMS = ["baseline", "dgl", "pyg", "pyg-native-sampler"]


def make(name, graph, **changes):
    cls = registry.get(name)
    missing = cls.missing("cpu")
    if missing:
        pytest.skip(f"{name}: {missing.reason}")
    values = {"model": NO_MODEL, "batch_size": 64, "fanouts": (4, 3, 2), "seed": 3}
    system = cls(Cell("test", name, graph.name, **{**values, **changes}), graph)
    system.setup()
    return system


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_epoch_samples_and_does_nothing_else(name, small_graph, monkeypatch):
    system = make(name, small_graph)
    monkeypatch.setattr(system, "load", lambda drawn: pytest.fail("features were loaded"))
    report = system.check()
    assert report.ok, report.reason
    assert set(report.details) == {"batches", "edges_by_call"}
    sample = system.run_epoch(1)
    assert sample.ok, sample.reason
    assert (sample.batches, sample.seeds) == (4, 200)
    assert set(sample.phases_s) == {"sample"} and 0 < sample.phases_s["sample"] <= sample.wall_s
    assert sample.loss is None and sample.device_s is None
    assert sample.feature_bytes == {} and sample.h2d_bytes == 0
    assert system.recheck(7) == ""
    assert not hasattr(system, "model")


@pytest.mark.parametrize("name", ["baseline", "pyg-native-sampler"])
def test_the_same_edges_as_in_training(name, small_graph):
    sampling, training = make(name, small_graph), make(name, small_graph, model="gcn")
    assert sampling.check().digest == training.check().digest
    one, two = sampling.run_epoch(0), training.run_epoch(0)
    assert (one.sampled_edges, one.unique_nodes) == (two.sampled_edges, two.unique_nodes)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_timed_batch_of_other_seeds_is_caught(name, small_graph, monkeypatch):
    system = make(name, small_graph)
    right = system.sample
    monkeypatch.setattr(system, "sample", lambda seeds, e, b: right(seeds[:10], e, b))
    sample = system.run_epoch(0)
    assert not sample.ok and "other seeds than its own: 10" in sample.reason


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_lost_edges_are_caught(frontier, small_graph, monkeypatch):
    system = make("baseline", small_graph, frontier=frontier)
    right = system.sample

    def lose(seeds, epoch, batch):
        drawn = right(seeds, epoch, batch)
        last = drawn.blocks[0]
        last.indices = last.indices[: -1 if batch == 2 else None]
        return drawn

    monkeypatch.setattr(system, "sample", lose)
    sample = system.run_epoch(0)
    assert not sample.ok and sample.reason.startswith("timed batch 3, hop 3: ")


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_kept_counts_are_those_of_the_batch(frontier, small_graph):
    system = make("baseline", small_graph, frontier=frontier)
    seeds = small_graph.train_idx[:40]
    drawn, checked = system.sample(seeds, 0, 0), system.hops(system.gate_sample(seeds, 0))
    found = system.counted(system.keep(drawn))
    assert sum(n for _, n in found.hops) == drawn.sampled_edges
    assert (found.nodes, found.seeds) == (drawn.input_nodes.numel(), 40)
    for (dst, edges), hop in zip(found.hops, checked, strict=True):
        assert torch.equal(dst.long(), torch.from_numpy(hop.dst)) and edges == hop.edge_dst.size


def test_the_harness_expects_a_loss_of_a_model_and_none_without():
    answer = {"epoch": 0, "loss": None, "wall_s": 1.0}
    cells = {m: Cell("e", "baseline", "d", m) for m in ("gcn", NO_MODEL)}
    assert audit.sample_fault(cells[NO_MODEL], {}, 0, answer) == ""
    assert "loss of epoch 0 is None" in audit.sample_fault(cells["gcn"], {}, 0, answer)
    answer["loss"] = 0.5
    assert audit.sample_fault(cells["gcn"], {}, 0, answer) == ""
    assert "no model" in audit.sample_fault(cells[NO_MODEL], {}, 0, answer)
    same = [{"epoch": e, "loss": None} for e in range(5)]
    assert audit.loss_fault(same) == ""
