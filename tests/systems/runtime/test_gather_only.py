"""Batches without hops: every system gathers the seeds' rows and passes gate and audit."""

from __future__ import annotations

import pytest
import torch
from compose import SYSTEMS, counted, make, run

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Hop, MiniBatch
from gnnbench.datasets.prepare import load_dataset
from gnnbench.statistics.work_class import work_class
from gnnbench.validation import gate


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return load_dataset("rows@1000x13", root=tmp_path_factory.mktemp("data"))


def gathering(table, system="baseline", settings=None, **changes):
    return make(table, system, settings, until="memory_io", **{"fanouts": (), **changes})


@pytest.mark.parametrize("system", [s for s in SYSTEMS if s != "pyg-native-sampler"])
def test_every_system_gathers_rows_of_seeds(table, system):
    """Gate, epochs, verification and audit; the work of all systems is identical."""
    one, reference = gathering(table, system), gathering(table)
    report, reference_report = one.check(), reference.check()
    assert report.ok, report.reason
    assert (report.edges_per_seed, report.nodes_per_seed) == (0.0, 1.0)
    assert work_class(reference_report.to_json(), report.to_json()) == "identical"
    epoch_report = run(one, epoch=5)
    assert epoch_report.ok, epoch_report.reason
    assert (epoch_report.batches, epoch_report.seeds, epoch_report.sampled_edges) == (16, 1000, 0)
    assert epoch_report.unique_nodes == 1000
    assert counted(epoch_report)["features", "feature_bytes", "host"] == 1000 * 13 * 4
    assert one.glance()[1] == "" and one.recheck(7) == ""
    timeline = make_timeline()
    verified, other = one.verify(9, timeline), reference.verify(9, make_timeline())
    assert verified.ok, verified.reason
    assert verified.digest == other.digest
    alone, fault = one.probe([1, 2])
    assert fault == "" and min(alone["memory_io"]) > 0
    one.close()
    reference.close()


def test_pyg_store_supports_pyg_samplers_only(table):
    with pytest.raises(UnsupportedError, match="fetches for PyG's samplers only"):
        gathering(table, "pyg-native-sampler").check()


def make_timeline():
    from gnnbench.measure.timeline import Timeline

    timeline = Timeline.on("cpu")
    timeline.start()
    return timeline


@pytest.mark.parametrize("schedule", ["serial", "prefetch"])
@pytest.mark.parametrize("features", ["host", "dgl", "cache", "match", "window"])
def test_every_store_gathers_rows_of_seeds(table, features, schedule):
    settings = {"features": features, "schedule": schedule}
    system = gathering(table, settings=settings, max_batches=4)
    assert system.check().ok
    report = run(system)
    assert report.ok and report.seeds == 4 * 64
    system.close()


@pytest.mark.parametrize("pick", ["floyd", "weighted_alias", "random_walk"])
def test_any_pick_works_without_edges(table, pick):
    system = gathering(table, settings={"sampler": "gnnlab", "sampler.pick": pick})
    assert system.check().ok and run(system).ok


def test_nodes_other_than_seeds_are_detected(table):
    """By the gate and by the audit of a timed epoch."""
    system = gathering(table)
    plain = system.stages.sampler.sample

    def neighbours(seeds, epoch, number):
        return plain((seeds + 1) % 1000, epoch, number)

    system.stages.sampler.sample = neighbours
    report = system.check()
    assert not report.ok and "rows of 64 nodes are asked for" in report.reason
    assert "drawn for other seeds than its own" in run(system).reason


def test_rows_of_another_table_are_detected(table):
    system = gathering(table)
    load = system.stages.store.load
    system.stages.store.load = lambda batch: load(batch).flip(0)
    assert "gathered feature rows differ" in system.check().reason
    assert "gathered feature rows differ" in run(system).reason


def test_input_nodes_are_seeds_and_sampled_nodes():
    seeds = torch.tensor([4, 1])
    hop = Hop(*(torch.tensor(ids).numpy() for ids in ([4, 1], [4, 4, 1], [7, 1, 7])), None)
    gate.check_inputs(seeds, [hop], torch.tensor([4, 1, 7], dtype=torch.int32))
    gate.check_inputs(seeds, [], MiniBatch(seeds, [], 0).input_nodes)
    for wrong in ([4, 1], [4, 1, 7, 7], [4, 1, 7, 8]):
        with pytest.raises(gate.Fault, match="are not the 3 drawn"):
            gate.check_inputs(seeds, [hop], torch.tensor(wrong))
