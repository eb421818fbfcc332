"""``baseline`` on a GPU: the gate, the same work as on the CPU, bytes, memory and time."""

import dataclasses
from types import SimpleNamespace

import compose
import pytest
import torch

from gnnbench.core.cell import phases
from gnnbench.harness.failures import from_exception
from gnnbench.kernels.features import gather
from gnnbench.models.kinds import MODELS

pytestmark = pytest.mark.gpu

STORES = ["host", "gpu", "uva"]
WHERE = {"host": "host_copy", "gpu": "device", "uva": "zero_copy"}


@pytest.fixture
def make():
    made = []

    def build(graph, device="cuda", settings=None, **changes):
        system = compose.make(graph, settings=settings, device=device, **changes)
        made.append(system)
        return system

    yield build
    for system in made:
        system.close()


@pytest.mark.parametrize("features", STORES)
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_gate_passes_and_epochs_train(make, small_graph, features, frontier, model):
    settings = {"features": features, "sampler.frontier": frontier}
    system = make(small_graph, settings=settings, model=model, learning_rate=0.02)
    report = system.check()
    assert report.ok, report.reason
    assert report.verified
    assert report.details["batches"] == 5
    row_bytes = small_graph.feature_dim * 4
    losses = []
    for epoch in range(8):
        sweep = compose.timed(system, epoch)
        audit = system.audit(epoch)
        assert audit.ok, audit.reason
        assert (audit.batches, audit.seeds) == (4, 200)
        assert compose.counted(audit) == {
            ("features", "feature_bytes", WHERE[features]): audit.unique_nodes * row_bytes,
            ("features", "calls", WHERE[features]): 4,
        }
        assert audit.peak_alloc_bytes > 0
        assert tuple(sweep.busy) == phases("compute")
        assert min(sweep.busy.values()) > 0
        losses.append(audit.loss)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("pick", ["floyd", "reservoir"])
def test_work_equals_the_cpu(make, small_graph, pick, wide):
    graph = small_graph
    if wide:
        graph = dataclasses.replace(graph, indices=graph.indices.long())
    on_gpu, on_cpu = (make(graph, device, {"sampler.pick": pick}) for device in ("cuda", "cpu"))
    a, b = on_gpu.check(), on_cpu.check()
    assert a.ok and b.ok
    assert a.digest == b.digest != ""
    for epoch in (0, 1):
        a, b = compose.run(on_gpu, epoch), compose.run(on_cpu, epoch)
        assert (a.sampled_edges, a.unique_nodes) == (b.sampled_edges, b.unique_nodes)
        assert a.loss == pytest.approx(b.loss, rel=1e-3)


def test_reservoir_is_the_default_pick(make, small_graph):
    assert make(small_graph).stages.sampler.pick == "reservoir"
    assert make(small_graph, "cpu").stages.sampler.pick == "floyd"


@pytest.mark.parametrize("features", STORES)
def test_epochs_are_repeatable_bit_for_bit(make, small_graph, features):
    losses = []
    for _ in range(2):
        system = make(small_graph, settings={"features": features})
        losses.append([compose.run(system, e).loss for e in range(3)])
    assert losses[0] == losses[1]


def test_staging_buffer_is_not_overwritten_during_its_copy(make, small_graph):
    """Many loads without synchronization, each checked afterwards."""
    store = make(small_graph).stages.store
    draws = torch.Generator().manual_seed(0)
    requests = [torch.randint(400, (n,), generator=draws) for n in (5, 300, 7, 999, 2000, 1, 4000)]
    ids = [torch.randint(400, (200_000,), generator=draws) for _ in range(6)] + requests
    rows = [store.load(SimpleNamespace(input_nodes=i.cuda())) for i in ids]
    for i, r in zip(ids, rows, strict=True):
        assert torch.equal(r.cpu(), small_graph.features[i])


def test_stale_features_are_detected(make, small_graph, monkeypatch):
    system = make(small_graph)
    store = system.stages.store
    right = store.load
    monkeypatch.setattr(store, "load", lambda batch: right(batch).roll(1, 0))
    assert "feature rows differ" in system.check().reason
    assert "last timed batch: " in compose.run(system).reason


def test_wrong_edges_are_detected(make, small_graph, monkeypatch):
    system = make(small_graph)
    keep = system.stages.keep

    def one_less(batch, rows):
        keep(batch, rows)
        number, kept = system.recorder.batches[-1]
        layers = [(nodes, dst, edges - 1) for nodes, dst, edges in kept.layers]
        system.recorder.batches[-1] = number, dataclasses.replace(kept, layers=layers)

    system.stages.keep = one_less
    report = compose.run(system)
    assert not report.ok and "timed batch 1" in report.reason


def test_single_precision_is_not_reduced(make, small_graph):
    torch.backends.cuda.matmul.allow_tf32 = True
    make(small_graph)
    assert not torch.backends.cuda.matmul.allow_tf32


def test_phases_add_up_to_the_wall_time(make, big_graph):
    """Epochs of tenths of a second: only the batch order lies outside all spans."""
    for features in STORES:
        system = make(
            big_graph, settings={"features": features}, batch_size=8000, fanouts=(15, 10, 5),
            hidden=64,
        )  # fmt: skip
        compose.run(system, 0)
        ratios = []
        for epoch in range(1, 6):
            sweep = compose.timed(system, epoch)
            assert system.audit(epoch).ok
            assert sweep.overlap == 0
            assert sweep.busy == sweep.alone
            ratios.append(sum(sweep.busy.values()) / sweep.wall)
            assert sweep.wall == pytest.approx(sweep.idle + sum(sweep.alone.values()))
        print(features, sweep, ratios)
        assert sorted(ratios)[2] > 0.95


def test_full_device_is_reported_as_gpu_oom(make, small_graph):
    """For allocations by torch and by our operators."""
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert from_exception(error.value).status == "oom_gpu"
    rows = torch.ones(1, 1 << 20, device="cuda")
    ids = torch.zeros(1 << 24, dtype=torch.int64, device="cuda")
    with pytest.raises(RuntimeError) as ours:
        gather(rows, ids)
    assert from_exception(ours.value).status == "oom_gpu"
    assert compose.run(make(small_graph)).ok


@pytest.fixture(scope="module")
def big_graph():
    """A generated graph of 300 k nodes, 6 M edges, 64 columns."""
    from gnnbench.datasets.graph import Graph

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
