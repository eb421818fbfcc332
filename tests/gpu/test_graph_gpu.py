"""Training steps as CUDA graphs: losses, larger shapes, and unchanged state."""

import gc

import pytest
import torch
from compose import counted, make, run

from gnnbench.measure.timeline import Timeline
from gnnbench.models.adam import Adam
from gnnbench.pipelines import padded
from gnnbench.pipelines.cuda_graph import CapturedStep
from gnnbench.systems.runtime import stage_setup

pytestmark = pytest.mark.gpu

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches


def graph(**settings):
    return {"schedule.step": "graph", **settings}


def losses(system, epoch):
    """The loss of each batch."""
    system.run_epoch(epoch, Timeline.on("cuda"))
    actual = torch.stack(system.trainer.losses).tolist()
    report = system.audit(epoch)
    assert report.ok, report.reason
    return actual, report


@pytest.mark.parametrize("aggregate", ["csr", "tuned", "memory-aware", "memory-aware-warp"])
@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin", "gat", "pinsage", "gcn-symmetric"])
def test_losses_equal_the_eager_trainer_batch_by_batch(model, aggregate, small_graph):
    eager = make(small_graph, settings={"aggregate": aggregate}, model=model, **SMALL)
    ours = make(small_graph, settings=graph(aggregate=aggregate), model=model, **SMALL)
    assert ours.check().ok
    for epoch in range(4):
        right, _ = losses(eager, epoch)
        actual, report = losses(ours, epoch)
        assert actual == pytest.approx(right, rel=1e-3)
        assert len(set(actual)) == 10  # each replay has a new batch
        assert counted(report)["schedule", "padded_rows", ""] > 0
        assert counted(report)["schedule", "row_padding", ""] > 0
    assert ours.recheck(11) == ""
    eager.close()
    ours.close()


def test_capture_works_with_garbage_graphs(small_graph, monkeypatch):
    """Graphs in reference cycles are freed by the garbage collector, which may run at any time."""
    run_step = padded.PaddedStep._run

    def collecting(step, rows):
        if torch.cuda.is_current_stream_capturing():
            gc.collect()
        return run_step(step, rows)

    monkeypatch.setattr(padded.PaddedStep, "_run", collecting)
    gc.disable()
    try:
        cycle = [make(small_graph, settings=graph(), model="gcn", **SMALL)]
        cycle.append(cycle)
        del cycle
        system = make(small_graph, settings=graph(), model="gcn", **SMALL)
    finally:
        gc.enable()
    assert system.check().ok
    system.close()


@pytest.mark.parametrize("pick", ["floyd", "random_walk"])
@pytest.mark.parametrize("schedule", ["serial", "prefetch", "producer-consumer", "alternate"])
def test_every_schedule_with_evaluation(schedule, pick, small_graph, one_thread):
    """PinSAGE uses the visit counts of walks as weights."""
    actual = []
    how = {"schedule": schedule, "sampler.pick": pick}
    for settings in (how, graph(**how)):
        system = make(small_graph, settings=settings, model="pinsage", evaluate="sampled", **SMALL)
        assert system.check().ok
        reports = [run(system, epoch) for epoch in range(4)]
        assert all(r.ok for r in reports), [r.reason for r in reports]
        before = system.trainer.kept()
        verified = system.verify(9, Timeline.on("cuda"))
        assert verified.ok, verified.reason
        assert all(map(torch.equal, before, system.trainer.kept()))
        actual.append((reports, verified.digest, system.evaluate()))
        system.close()
    (eager, digest, accuracies), (ours, own_digest, own_accuracies) = actual
    assert digest == own_digest
    assert own_accuracies == pytest.approx(accuracies, abs=0.03)
    for right, report in zip(eager, ours, strict=True):
        assert report.loss == pytest.approx(right.loss, rel=1e-3)
        assert report.unique_nodes == right.unique_nodes


@pytest.mark.parametrize("schedule", ["serial", "prefetch"])
def test_batch_that_does_not_fit_is_captured_again(schedule, small_graph, monkeypatch, one_thread):
    """Within an epoch, while other threads allocate; no batch is lost or run twice."""
    monkeypatch.setattr(stage_setup, "FIRST_BATCHES", 0)
    monkeypatch.setattr(padded, "ROOM", 1.0)
    eager = make(small_graph, model="graphsage", **SMALL)
    settings = graph(schedule=schedule, features="uva")
    ours = make(small_graph, settings=settings, model="graphsage", **SMALL)
    assert isinstance(ours.stages.trainer, CapturedStep)
    assert all(stage != "schedule" for stage, *_ in ours.setup_counts)  # nothing captured yet
    times = []
    for epoch in range(5):
        right, _ = losses(eager, epoch)
        actual, report = losses(ours, epoch)
        assert actual == pytest.approx(right, rel=1e-3)
        counts = counted(report)
        times.append(counts["schedule", "recaptures", ""])
        assert (counts["schedule", "recapture_time_s", ""] > 0) is (times[-1] > 0)
    assert times[0] >= 2  # the first batch is not the largest in every layer
    eager.close()
    ours.close()


@pytest.mark.parametrize("schedule", ["serial", "prefetch"])
@pytest.mark.parametrize("features", ["gpu", "cache", "uva"])
def test_graphs_read_rows_in_the_buffers_of_the_store(features, schedule, small_graph, one_thread):
    """Each buffer of the store has a graph that is captured before the first epoch; rows of a store
    without buffers are copied."""
    settings = graph(features=features, schedule=schedule)
    eager = make(small_graph, settings={"features": features}, **SMALL)
    ours = make(small_graph, settings=settings, **SMALL)
    trainer, store = ours.stages.trainer, ours.stages.store
    room = trainer._memory.shape.nodes[0]
    buffers = {b.data_ptr() for b in store.reserve(room)}
    buffered = features == "gpu"  # the store of a cache returns newly allocated rows
    assert len(buffers) == (ours.job.max_in_flight if buffered else 0)
    for epoch in range(4):
        right, _ = losses(eager, epoch)
        actual, report = losses(ours, epoch)
        assert actual == pytest.approx(right, rel=1e-3)
        assert counted(report)["schedule", "recaptures", ""] == 0
    assert (set(trainer._graphs) == buffers) is buffered
    assert (trainer._memory._own_buffer is None) is buffered
    eager.close()
    ours.close()


def test_capture_does_not_change_the_model_and_is_reported(small_graph):
    eager, ours = (make(small_graph, settings=s, **SMALL) for s in ({}, graph()))
    states = [
        [p.detach().cpu() for p in system.trainer.model.parameters()] for system in (eager, ours)
    ]
    assert all(map(torch.equal, *states))
    assert not any(bool(t.any()) for t in ours.trainer._optimizer.state)
    ((stage, name, _, seconds),) = ours.setup_counts
    assert (stage, name) == ("schedule", "capture_time_s") and seconds > 0
    assert ours.trainer.losses == []
    eager.close()
    ours.close()


def test_memory_is_constant_across_epochs(small_graph, one_thread):
    system = make(small_graph, settings=graph(), **SMALL)
    actual = []
    for _ in range(6):
        assert run(system, 3).ok
        actual.append(torch.cuda.memory_allocated())
    assert len(set(actual[2:])) == 1
    system.close()


def test_step_does_not_synchronize(small_graph):
    """Torch raises an error if one of its operators waits for the GPU."""
    system = make(small_graph, settings=graph(), **SMALL)
    assert run(system, 0).ok
    seeds = system.order.batches(1, torch.device("cuda"))[0]
    batch = system.stages.sampler.sample(seeds, 1, 0)
    rows = system.stages.store.load(batch)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        system.stages.trainer.step(batch, rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(system.trainer.take_losses()) == 1
    system.close()


def test_capturable_updates_equal_torch_within_rounding():
    torch.manual_seed(3)
    start = torch.randn(50, device="cuda")
    gradients = torch.randn(30, 50, device="cuda")
    actual = []
    for capturable in (False, True):
        parameter = start.clone().requires_grad_()
        optimizer = Adam([parameter], lr=0.01, capturable=capturable)
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
        actual.append(parameter.detach())
        assert all(t.is_cuda is capturable for t in optimizer.state[:1])
    torch.testing.assert_close(*actual, rtol=1e-5, atol=1e-6)
    assert not torch.equal(actual[0], start)
