"""Every system that trains on blocks passes its own gate, and the gate is not blind."""

import pytest
import torch

from gnnbench.cell import Cell
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.systems import registry

SYSTEMS = ["baseline", "dgl", "pyg", "pyg-native-sampler"]


def make(name, graph, **changes):
    cls = registry.get(name)
    missing = cls.missing("cpu")
    if missing:
        pytest.skip(f"{name}: {missing.reason}")
    values = {"model": "gcn", "batch_size": 64, "fanouts": (4, 3, 2), "hidden": 16, "seed": 3}
    cell = Cell("test", name, graph.name, **{**values, **changes})
    system = cls(cell, graph)
    system.setup()
    return system


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_gate_passes_and_epochs_train(name, model, small_graph):
    system = make(name, small_graph, model=model, learning_rate=0.02)
    report = system.check()
    assert report.ok, report.reason
    assert report.details["batches"] == 5
    assert report.edges_per_seed > 0 and report.nodes_per_seed >= 1
    samples = [system.run_epoch(e) for e in range(8)]
    for s in samples:
        assert s.ok, s.reason
        assert (s.batches, s.seeds) == (4, 200)  # three whole batches and a short one
        assert sum(s.phases_s.values()) <= s.wall_s
        assert s.feature_bytes["host_copy"] == s.unique_nodes * small_graph.feature_dim * 4
    assert samples[-1].loss < samples[0].loss


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("batch_size", "batches"), [(1000, 1), (199, 2)])
def test_batch_above_the_training_set_and_last_batch_of_one(name, batch_size, batches, small_graph):
    system = make(name, small_graph, batch_size=batch_size)
    assert system.check().ok
    sample = system.run_epoch(0)
    assert (sample.batches, sample.seeds) == (batches, 200)


@pytest.mark.parametrize("name", SYSTEMS)
def test_fanout_above_every_degree_takes_every_edge(name, small_graph):
    system = make(name, small_graph, fanouts=(1000,))
    assert system.check().ok
    sample = system.run_epoch(0)
    assert sample.sampled_edges == int(small_graph.indptr.diff()[small_graph.train_idx].sum())


def test_picks_do_identical_work_or_say_so(small_graph):
    one, same = (make("baseline", small_graph).check().digest for _ in range(2))
    other_pick = make("baseline", small_graph, pick="reservoir").check().digest
    assert one == same and one != other_pick


def test_baseline_with_the_new_frontier_counts_as_pyg_does(small_graph):
    ours = make("baseline", small_graph, frontier="new", fanouts=(1000, 1000)).run_epoch(0)
    theirs = make("pyg-native-sampler", small_graph, fanouts=(1000, 1000)).run_epoch(0)
    assert ours.sampled_edges == theirs.sampled_edges
    assert ours.unique_nodes == theirs.unique_nodes


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_frameworks_lose_alike(model, small_graph):
    """Full neighbourhoods: every framework draws the same edges, so losses agree closely."""
    losses = {}
    for name in ("baseline", "dgl"):
        system = make(name, small_graph, model=model, fanouts=(1000, 1000))
        losses[name] = [system.run_epoch(e).loss for e in range(3)]
    assert losses["dgl"] == pytest.approx(losses["baseline"], rel=1e-4)


@pytest.mark.parametrize(
    ("name", "changes", "error", "words"),
    [
        ("baseline", {"pick": "nonsense"}, UnsupportedError, "nonsense"),
        ("dgl", {"frontier": "new"}, UnsupportedError, "frontier"),
        ("baseline", {"options": {"fused": True}}, UsageError, "no option 'fused'"),
        ("baseline", {"model": "gcm"}, UsageError, "gcn"),
        ("baseline", {"options": {"features": "disk"}}, UsageError, "host, gpu, uva"),
        ("dgl", {"options": {"fused": "maybe"}}, UsageError, "true, false"),
        (
            "dgl",
            {"options": {"id_type": "int16"}},
            UsageError,
            "cannot be 'int16'; it is one of: int32, int64",
        ),
    ],
)
def test_wrong_settings_say_what_is_wrong(name, changes, error, words, small_graph):
    with pytest.raises(error, match=words):
        make(name, small_graph, **changes)


def test_dgl_fused_sampler_on_int32_is_caught(small_graph):
    """Its map is not reset between calls: each call after the first loses edges."""
    system = make("dgl", small_graph, options={"fused": True, "id_type": "int32"})
    report = system.check()
    assert not report.ok
    assert report.reason.startswith("call 2 of the sampler") and "edges by call" in report.reason


@pytest.mark.real_data
def test_dgl_fused_sampler_on_int32_loses_half_of_ogbn_arxiv(real_data, monkeypatch):
    from gnnbench.data.prepare import load_dataset

    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = load_dataset("ogbn_arxiv+sym")
    settings = {"batch_size": 1024, "fanouts": (15, 10, 5)}
    broken = make("dgl", graph, options={"fused": True, "id_type": "int32"}, **settings).check()
    first, second, third, *_ = broken.details["edges_by_call"]
    assert not broken.ok and broken.reason.startswith("call 2 of the sampler")
    assert second < 0.7 * first and third < second
    for options in ({"fused": True}, {"fused": False, "id_type": "int32"}):
        right = make("dgl", graph, options=options, **settings).check()
        assert right.ok, right.reason


def test_stale_and_wrong_features_are_caught(small_graph, monkeypatch):
    system = make("baseline", small_graph)
    right = system.load
    monkeypatch.setattr(system, "load", lambda drawn: right(drawn).roll(1, 0))
    assert "feature rows differ" in system.check().reason


def test_wrong_forward_values_are_caught(small_graph):
    system = make("baseline", small_graph)
    with torch.no_grad():
        system.model.layers[0].weight.mul_(1.01)
    assert "forward values" in system.check().reason


def test_lost_edges_in_a_timed_batch_are_caught(small_graph, monkeypatch):
    system = make("baseline", small_graph)
    right = system.keep
    monkeypatch.setattr(
        system, "keep", lambda d: (d.seeds, [(t, k, n - 1) for t, k, n in right(d)[1]])
    )
    sample = system.run_epoch(0)
    assert not sample.ok and "timed batch 1" in sample.reason


@pytest.mark.parametrize("name", SYSTEMS)
def test_other_seeds_in_a_timed_batch_are_caught(name, small_graph, monkeypatch):
    system = make(name, small_graph)
    assert system.check().ok
    right = system.sample
    monkeypatch.setattr(system, "sample", lambda seeds, e, b: right(seeds[:10], e, b))
    sample = system.run_epoch(0)
    assert not sample.ok and "other seeds than its own: 10" in sample.reason


@pytest.mark.parametrize("name", SYSTEMS)
def test_stale_rows_in_a_timed_batch_are_caught(name, small_graph, monkeypatch):
    system = make(name, small_graph)
    assert system.check().ok
    right = system.load
    monkeypatch.setattr(system, "load", lambda drawn: torch.zeros_like(right(drawn)))
    sample = system.run_epoch(0)
    assert not sample.ok and "last timed batch" in sample.reason


@pytest.mark.parametrize("change", [{"pick": "reservoir"}, {"batch": 0}])
def test_a_sampler_that_draws_otherwise_when_timed_is_caught(change, small_graph, monkeypatch):
    from gnnbench.sampling import hop_by_hop as sampler

    right = sampler.hop_by_hop

    def other(*args, with_positions=False, **how):
        how = how if with_positions else {**how, **change}
        return right(*args, with_positions=with_positions, **how)

    monkeypatch.setattr(sampler, "hop_by_hop", other)
    assert "as timed draws other edges" in make("baseline", small_graph).check().reason


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_wrong_gradients_are_caught(name, model, small_graph, monkeypatch):
    system = make(name, small_graph, model=model)
    right = system._gradient
    assert system.check().details["backward_error"] < 1e-4
    monkeypatch.setattr(system, "_gradient", lambda batch, x: 1.01 * right(batch, x).roll(1, 0))
    assert "gradients" in system.check().reason


def test_an_epoch_that_trains_nothing_is_caught(small_graph, monkeypatch):
    system = make("baseline", small_graph)
    monkeypatch.setattr(system.optimizer, "step", lambda: None)
    sample = system.run_epoch(0)
    assert not sample.ok and "nothing was trained" in sample.reason
