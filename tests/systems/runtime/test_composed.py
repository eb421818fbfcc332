"""Every available system: gate, epochs, audits and counters, for each end of an epoch."""

import pytest
import torch
from compose import SYSTEMS, TRAINED, counted, make, run, timed

from gnnbench.core.cell import phases
from gnnbench.sampling.stage import SamplerStage

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name,model", TRAINED)
def test_gate_passes_and_epochs_train(name, model, small_graph):
    system = make(small_graph, name, model=model, learning_rate=0.02)
    report = system.check()
    assert report.ok, report.reason
    assert report.verified and report.details["batches"] == 5
    assert report.details["forward_error"] < 1e-4 and report.details["backward_error"] < 1e-4
    assert report.edges_per_seed > 0 and report.nodes_per_seed >= 1
    assert bool(report.digest) == system.stages.sampler.native
    losses = []
    for epoch in range(5):
        sweep = timed(system, epoch)
        audit = system.audit(epoch)
        assert audit.ok, audit.reason
        assert (audit.epoch, audit.batches, audit.seeds) == (epoch, 4, 200)  # a short last batch
        assert tuple(sweep.busy) == phases("compute") and min(sweep.busy.values()) > 0
        assert sweep.overlap == 0 and sum(sweep.busy.values()) <= sweep.wall
        row_bytes = small_graph.feature_dim * 4
        assert counted(audit) == {
            ("features", "feature_bytes", "host"): audit.unique_nodes * row_bytes,
            ("features", "calls", "host"): 4,
        }
        assert audit.peak_alloc_bytes > 0
        losses.append(audit.loss)
    assert losses[-1] < losses[0]
    assert system.recheck(9) == ""
    system.close()


@pytest.mark.parametrize("name", SYSTEMS)
def test_epoch_until_sample_only_samples(name, small_graph):
    system = make(small_graph, name, until="sample")
    assert system.stages.store is None and system.stages.trainer is None
    report = system.check()
    assert report.ok, report.reason
    assert set(report.details) == {
        "batches", "seeds", "edges_by_call", "order_window", "batches_an_update",
    }  # fmt: skip
    sweep = timed(system, 1)
    audit = system.audit(1)
    assert audit.ok, audit.reason
    assert (audit.batches, audit.seeds) == (4, 200)
    assert set(sweep.busy) == {"sample"} and 0 < sweep.busy["sample"] <= sweep.wall
    assert audit.loss is None and audit.counts == []
    assert system.recheck(7) == ""


@pytest.mark.parametrize("name", SYSTEMS)
def test_epoch_until_memory_io_does_not_compute(name, small_graph):
    system = make(small_graph, name, until="memory_io")
    assert system.stages.trainer is None
    report = system.check()
    assert report.ok, report.reason
    assert "forward_error" not in report.details
    sweep = timed(system, 1)
    audit = system.audit(1)
    assert audit.ok, audit.reason
    assert tuple(sweep.busy) == ("sample", "memory_io") and audit.loss is None
    assert counted(audit)["features", "calls", "host"] == 4
    assert system.profile(5) == {}  # its store does not use overlap
    assert system.recheck(7) == ""


@pytest.mark.parametrize("name", ["baseline", "pyg-native-sampler"])
def test_edges_do_not_depend_on_the_end_of_an_epoch(name, small_graph):
    systems = [make(small_graph, name, until=u) for u in phases("compute")]
    assert len({s.check().digest for s in systems}) == 1
    audits = [run(s) for s in systems]
    assert len({(a.sampled_edges, a.unique_nodes) for a in audits}) == 1


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("batch_size", "batches"), [(1000, 1), (199, 2)])
def test_batch_above_the_training_set_and_last_batch_of_one(name, batch_size, batches, small_graph):
    system = make(small_graph, name, batch_size=batch_size)
    assert system.check().ok
    audit = run(system)
    assert audit.ok, audit.reason
    assert (audit.batches, audit.seeds) == (batches, 200)


def test_max_batches_ends_an_epoch(small_graph):
    audit = run(make(small_graph, max_batches=2))
    assert audit.ok and (audit.batches, audit.seeds) == (2, 128)


@pytest.mark.parametrize("name", SYSTEMS)
def test_fanout_above_every_degree_takes_every_edge(name, small_graph):
    system = make(small_graph, name, fanouts=(1000,))
    assert system.check().ok
    degrees = small_graph.indptr.diff()
    assert run(system).sampled_edges == int(degrees[small_graph.train_idx].sum())


def test_audit_resets_counters(small_graph):
    system = make(small_graph)
    first, second = run(system, 0), run(system, 0)
    assert (first.counts, first.batches) == (second.counts, second.batches)
    assert not system.audit(0).ok  # no epoch was run since


@pytest.mark.parametrize("until", ["memory_io", "compute"])
def test_batches_of_the_gate_are_not_counted(until, small_graph):
    system = make(small_graph, until=until)
    assert system.check().ok
    first = run(system).counts
    assert first == run(make(small_graph, until=until)).counts != []
    assert system.recheck(3) == ""
    assert run(system).counts == first


def test_digest_depends_on_the_pick(small_graph):
    one, same = (make(small_graph).check().digest for _ in range(2))
    other_pick = make(small_graph, settings={"sampler.pick": "reservoir"}).check().digest
    assert one == same and one != other_pick


def test_new_frontier_has_the_counts_of_pyg(small_graph):
    all_neighbours = {"fanouts": (1000, 1000)}
    ours = run(make(small_graph, settings={"sampler.frontier": "new"}, **all_neighbours))
    theirs = run(make(small_graph, "pyg-native-sampler", **all_neighbours))
    assert ours.sampled_edges == theirs.sampled_edges
    assert ours.unique_nodes == theirs.unique_nodes


def test_unknown_model_is_refused(small_graph):
    with pytest.raises(Exception, match="gcn"):
        make(small_graph, model="gcm")


def test_worker_builds_the_recipe_of_the_cell(small_graph):
    """Not the current defaults of the system's name."""
    system = make(small_graph, settings={"sampler": "fused-map", "sampler.pick": "reservoir"})
    assert (system.recipe.sampler.name, system.stages.sampler.pick) == ("fused-map", "reservoir")
    assert isinstance(system.stages.sampler, SamplerStage)


def test_seeds_of_a_sampling_epoch_have_the_graphs_id_type(small_graph, monkeypatch):
    system = make(small_graph, until="sample")
    dtypes, original = [], system.stages.sampler.sample
    monkeypatch.setattr(
        system.stages.sampler, "sample", lambda s, e, n: dtypes.append(s.dtype) or original(s, e, n)
    )
    assert run(system).ok
    assert dtypes == [torch.int32] * 4
