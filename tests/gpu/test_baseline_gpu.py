"""``baseline`` on a GPU: the gate, the same work as on the CPU, bytes, memory and time."""

import dataclasses

import pytest
import torch

from gnnbench.cell import Cell
from gnnbench.errors import UsageError
from gnnbench.ops.features import gather
from gnnbench.runner.failures import from_exception
from gnnbench.systems.baseline import Baseline

pytestmark = pytest.mark.gpu


@pytest.fixture
def make():
    made = []

    def build(graph, device="cuda", **changes):
        assert Baseline.missing(device) is None
        values = {"model": "gcn", "batch_size": 64, "fanouts": (4, 3, 2), "hidden": 16, "seed": 3}
        system = Baseline(
            Cell("test", "baseline", graph.name, device=device, **{**values, **changes}), graph
        )
        system.setup()
        made.append(system)
        return system

    yield build
    for system in made:
        system.close()


@pytest.mark.parametrize("features", ["host", "gpu", "uva"])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_gate_passes_and_epochs_train(make, small_graph, features, frontier, model):
    system = make(
        small_graph,
        model=model,
        frontier=frontier,
        learning_rate=0.02,
        options={"features": features},
    )
    report = system.check()
    assert report.ok, report.reason
    assert report.details["batches"] == 5
    samples = [system.run_epoch(e) for e in range(8)]
    row_bytes = small_graph.feature_dim * 4
    path = {"host": "host_copy", "gpu": "cache", "uva": "zero_copy"}[features]
    for s in samples:
        assert s.ok, s.reason
        assert (s.batches, s.seeds) == (4, 200)
        assert s.feature_bytes == {path: s.unique_nodes * row_bytes}
        assert s.h2d_bytes == (0 if features == "gpu" else s.unique_nodes * row_bytes)
        assert s.peak_alloc_bytes > 0
        assert set(s.phases_s) == {"sample", "memory_io", "compute"}
        assert min(s.phases_s.values()) > 0
    assert samples[-1].loss < samples[0].loss


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("pick", ["floyd", "reservoir"])
def test_the_work_is_the_cpus(make, small_graph, pick, wide):
    graph = small_graph
    if wide:
        graph = dataclasses.replace(graph, indices=graph.indices.long())
    on_gpu, on_cpu = (make(graph, device, pick=pick) for device in ("cuda", "cpu"))
    a, b = on_gpu.check(), on_cpu.check()
    assert a.ok and b.ok
    assert a.digest == b.digest != ""
    for epoch in (0, 1):
        a, b = on_gpu.run_epoch(epoch), on_cpu.run_epoch(epoch)
        assert (a.sampled_edges, a.unique_nodes) == (b.sampled_edges, b.unique_nodes)
        assert a.loss == pytest.approx(b.loss, rel=1e-3)


def test_reservoir_is_the_default_here(make, small_graph):
    assert make(small_graph).pick == "reservoir"
    assert make(small_graph, "cpu").pick == "floyd"


@pytest.mark.parametrize("features", ["host", "gpu", "uva"])
def test_epochs_repeat_bit_for_bit(make, small_graph, features):
    losses = []
    for _ in range(2):
        system = make(small_graph, options={"features": features})
        losses.append([system.run_epoch(e).loss for e in range(3)])
    assert losses[0] == losses[1]


def test_staging_is_not_overwritten_while_it_is_copied(make, small_graph):
    """Many loads in a row without waiting, each checked afterwards."""
    system = make(small_graph)
    draws = torch.Generator().manual_seed(0)
    asked = [torch.randint(400, (n,), generator=draws) for n in (5, 300, 7, 999, 2000, 1, 4000)]
    ids = [torch.randint(400, (200_000,), generator=draws) for _ in range(6)] + asked
    rows = [system.features.load(i.cuda()) for i in ids]
    for i, r in zip(ids, rows, strict=True):
        assert torch.equal(r.cpu(), small_graph.features[i])


def test_stale_features_and_wrong_edges_are_caught(make, small_graph, monkeypatch):
    system = make(small_graph)
    right = system.load
    monkeypatch.setattr(system, "load", lambda drawn: right(drawn).roll(1, 0))
    assert "feature rows differ" in system.check().reason
    monkeypatch.undo()
    right = system.counted

    def one_less(kept):
        found = right(kept)
        return found._replace(hops=[(dst, edges - 1) for dst, edges in found.hops])

    monkeypatch.setattr(system, "counted", one_less)
    sample = system.run_epoch(0)
    assert not sample.ok and "timed batch 1" in sample.reason


def test_single_precision_is_kept(make, small_graph):
    torch.backends.cuda.matmul.allow_tf32 = True
    make(small_graph)
    assert not torch.backends.cuda.matmul.allow_tf32


def test_phases_add_up_to_the_wall(make, big_graph):
    """Epochs of tenths of a second: spans leave no gap but the batch order's."""
    for features in ("host", "gpu", "uva"):
        system = make(
            big_graph,
            batch_size=8000,
            fanouts=(15, 10, 5),
            hidden=64,
            options={"features": features},
        )
        system.run_epoch(0)
        ratios = []
        for epoch in range(1, 6):
            s = system.run_epoch(epoch)
            assert s.ok, s.reason
            ratios.append(sum(s.phases_s.values()) / s.wall_s)
        print(features, s.wall_s, s.phases_s, ratios)
        assert sorted(ratios)[2] > 0.95
        assert max(ratios) < 1.001


def test_a_full_device_is_told_as_such(make, small_graph):
    """By torch's allocations and by those of our operators."""
    with pytest.raises(torch.OutOfMemoryError) as found:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert from_exception(found.value).status == "oom_gpu"
    rows = torch.ones(1, 1 << 20, device="cuda")
    ids = torch.zeros(1 << 24, dtype=torch.int64, device="cuda")
    with pytest.raises(RuntimeError) as ours:
        gather(rows, ids)
    assert from_exception(ours.value).status == "oom_gpu"
    assert make(small_graph).run_epoch(0).ok


def test_unknown_places_of_features_are_refused(make, small_graph):
    with pytest.raises(UsageError, match="host, gpu, uva"):
        make(small_graph, options={"features": "disk"})
    with pytest.raises(UsageError, match="device cuda"):
        make(small_graph, "cpu", options={"features": "uva"})


@pytest.fixture(scope="module")
def big_graph():
    """300 k nodes, 6 M edges, 64 columns, made here."""
    from gnnbench.data.graph import Graph

    draws = torch.Generator().manual_seed(1)
    n = 300_000
    degree = torch.randint(0, 41, (n,), generator=draws)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    order = torch.randperm(n, generator=draws)
    return Graph(
        name="big",
        indptr=indptr,
        indices=torch.randint(n, (int(indptr[-1]),), generator=draws, dtype=torch.int32),
        features=torch.randn(n, 64, generator=draws),
        labels=torch.randint(0, 10, (n,), generator=draws),
        train_idx=order[:200_000].sort().values,
        val_idx=order[200_000:250_000].sort().values,
        test_idx=order[250_000:].sort().values,
        num_classes=10,
    )
