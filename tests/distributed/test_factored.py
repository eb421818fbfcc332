"""Sampler and trainer ranks: edges and updates of one process, each batch once."""

import copy
import os
import signal
import threading
import time

import pytest
import torch
from compose import counted, epoch_timeline, make, run, run_alike
from factored_ranks import SMALL
from torch import nn

from gnnbench.distributed.launcher import Launcher
from gnnbench.distributed.rank_messages import PhaseTimes
from gnnbench.measure.timeline import Timeline
from gnnbench.models.adam import Adam

pytestmark = pytest.mark.usefixtures("one_thread")


def trained(system, epochs=3):
    """By epoch: the mean loss, the sampled edges, and the parameters."""
    results = []
    for epoch in range(epochs):
        report = run(system, epoch)
        assert report.ok, report.reason
        weights = torch.cat([p.detach().flatten() for p in system.trainer.model.parameters()])
        facts = (report.batches, report.seeds, report.sampled_edges, report.unique_nodes)
        results.append((report.loss, facts, weights))
    return results


def by_steps(system, epoch, steps, model, optimizer):
    """Losses of one process that trains on the batches of each step, with one update per step for
    the mean over the step's seeds."""
    seeds, losses = system.order.batches(epoch), {}
    for step in steps:
        optimizer.zero_grad()
        whole = sum(seeds[n].numel() for n in step)
        for n in step:
            batch = system.stages.sampler.sample(seeds[n], epoch, n)
            rows = system.graph.features[batch.input_nodes.long()]
            values = model(system.trainer.framework.blocks(batch), rows)
            labels = system.graph.labels[batch.seeds.long()]
            loss = nn.functional.cross_entropy(values, labels)
            losses[n] = float(loss.detach())
            (loss * (seeds[n].numel() / whole)).backward()
        optimizer.step()
    return losses


def check_verified_epoch(plain, system):
    """The edges of all batches equal those of one process; the model is unchanged."""
    before = system.trainer.kept()
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    assert one.ok and other.ok, other.reason
    assert other.digest == one.digest != ""
    for own, kept in zip(system.trainer.kept(), before, strict=True):
        assert torch.equal(own, kept)  # the next epoch broadcasts these weights to all trainers
    assert run(system, 6).ok


@pytest.mark.parametrize(("samplers", "depth"), [(1, 1), (3, 0)])
def test_one_trainer_equals_one_process(factored, small_graph, samplers, depth):
    plain = make(small_graph, **SMALL)
    system = factored(samplers, 1, {"schedule.depth": depth})
    for (loss, facts, weights), (other, drawn, moved) in zip(
        trained(plain), trained(system), strict=True
    ):
        assert drawn == facts
        assert other == pytest.approx(loss, rel=1e-5)
        torch.testing.assert_close(moved, weights, rtol=1e-4, atol=1e-6)
    check_verified_epoch(plain, system)


@pytest.mark.parametrize(("samplers", "trainers"), [(1, 3), (2, 2)])
def test_several_trainers_equal_one_process_with_summed_gradients(
    factored, small_graph, samplers, trainers
):
    system = factored(samplers, trainers)
    plain = make(small_graph, **SMALL)
    model = copy.deepcopy(system.trainer.model)
    optimizer = Adam(model.parameters(), lr=system.cell.learning_rate)
    for epoch in range(3):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert report.batches == 7 and report.seeds == 200
        assert counted(report)["schedule", "updates", ""] == -(-7 // trainers)
        steps = [list(range(b, min(b + trainers, 7))) for b in range(0, 7, trainers)]
        assert [list(s.batches) for s in system.schedule.coordination.steps] == steps
        losses = by_steps(plain, epoch, steps, model, optimizer)
        assert report.loss == pytest.approx(sum(losses.values()) / 7, rel=1e-4)
        for ours, theirs in zip(system.trainer.model.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    check_verified_epoch(plain, system)


def test_verification_detects_wrong_losses_and_weights(factored):
    system = factored(1, 2)
    model = system.trainer.model
    report = system.verify(5, Timeline.on("cpu"))
    assert report.ok, report.reason
    assert counted(report)["schedule", "rank_trained", "0"] >= 3  # repeated steps are not counted
    looked, steps = system.schedule.coordination.verification, system.schedule.coordination.steps
    losses = system.auditor.merged.losses
    assert sum(losses) / 7 == pytest.approx(report.loss)
    assert looked.fault(5, steps, losses) == ""
    little = losses[3] * (1 + 3e-4)
    assert "batch 4 has a loss of" in looked.fault(5, steps, [*losses[:3], little, *losses[4:]])
    half = [step for step in steps if step.number % 2]
    assert "batches, and reports losses of 7" in looked.fault(5, half, losses)
    first = torch.cat([p.flatten() for p in looked.before[: len(list(model.parameters()))]])
    looked.after = looked.after + 0.02 * (looked.after - first)
    assert "weights 2.0% of their way off" in looked.fault(5, steps, losses)


@pytest.mark.parametrize(
    ("system", "shared"),
    [("gnnlab", {"features.ratio": 0.2}), ("baseline", {"sampler.frontier": "new"})],
)
def test_native_systems_and_caches(factored, small_graph, system, shared):
    plain = make(small_graph, system, {**shared, "schedule": "serial"}, **SMALL)
    ranks = factored(1, 1, shared, system=system)
    assert ranks.check().ok
    for (loss, facts, _), (other, drawn, _) in zip(trained(plain), trained(ranks), strict=True):
        assert drawn == facts and other == pytest.approx(loss, rel=1e-5)
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, ranks))
    assert other.digest == one.digest != "" and other.ok


def test_fewer_batches_than_trainers_and_samplers_are_valid(factored):
    system = factored(2, 2, batch_size=500)
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert report.batches == 1 and report.loss > 0


def test_factored_ranks_without_a_model_sample_and_fetch(factored, small_graph):
    plain = make(small_graph, until="memory_io", **SMALL)
    ours, theirs = run_alike(factored(1, 2, until="memory_io"), plain, 0)
    of_rows = ("features", "feature_bytes", "host")
    assert counted(ours)[of_rows] == counted(theirs)[of_rows]


def test_a_full_queue_blocks_the_sampler(factored):
    system = factored(2, 1, {"schedule.queue": 1, "schedule.depth": 0})
    step, begun = system.trainer.step, []

    def slow(batch, rows):
        time.sleep(0.05)
        begun.append(time.perf_counter())
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    timeline = epoch_timeline(system)
    report = system.audit(0)
    assert report.ok, report.reason
    counts = counted(report)
    assert counts["schedule", "queue_most", ""] == 1
    # Batch b enters its slot only after batch b - 1 has left it, after b - 2 was trained on.
    ends = {s.batch: s.end for s in timeline.spans() if s.phase == "sample"}
    assert all(ends[b] > begun[b - 2] for b in range(2, 7))
    assert sum(counts["schedule", "rank_wait_s", rank] for rank in "12") > 0
    room = run(system, 1)
    assert room.ok and counted(room)["schedule", "queue_most", ""] == 1


def test_a_long_queue_lets_the_sampler_run_ahead(factored):
    system = factored(1, 1, {"schedule.queue": 7, "schedule.depth": 0})
    step = system.trainer.step

    def slow(batch, rows):
        if batch.number == 0:
            deadline = time.monotonic() + 20
            tasks = system.schedule.coordination.scheduler.tasks
            while tasks.most_waiting < 6 and time.monotonic() < deadline:
                time.sleep(0.01)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    assert counted(run(system))["schedule", "queue_most", ""] == 6


@pytest.mark.parametrize("depth", [0, 2])
def test_a_stalled_trainer_delays_and_repeats_nothing(factored, small_graph, depth):
    """Rank 1 is stopped and continued in the middle of an epoch."""
    system = factored(1, 2, {"schedule.depth": depth})
    plain = make(small_graph, **SMALL)
    assert run(system).ok
    pid, step = system.schedule.pids[0], system.trainer.step

    def go_on():
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)

    wakes = threading.Thread(target=go_on)

    def stop(batch, rows):
        if wakes.ident is None:
            os.kill(pid, signal.SIGSTOP)
            wakes.start()
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = stop
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    wakes.join()
    assert other.ok, other.reason
    assert other.digest == one.digest
    counts = counted(other)
    assert counts["schedule", "rank_trained", "0"] + counts["schedule", "rank_trained", "1"] == 7


@pytest.mark.parametrize("profit", ["all-batches", "published"])
def test_a_sampler_stands_by_and_switches_back(factored, small_graph, profit):
    """The trainer waits in its first step until all is sampled; then standby has profit."""
    standby = {"schedule.standby": True, "schedule.queue": 7, "schedule.depth": 0,
               "schedule.profit": profit}  # fmt: skip
    system, plain = factored(1, 1, standby), make(small_graph, **SMALL)
    model = copy.deepcopy(system.trainer.model)
    optimizer = Adam(model.parameters(), lr=system.cell.learning_rate)
    step = system.trainer.step

    def slow(batch, rows):
        if batch.number == 0:
            tasks, deadline = system.schedule.coordination.scheduler.tasks, time.monotonic() + 20
            while time.monotonic() < deadline:
                if 1 in tasks._share_requests or 1 in tasks.steps[0].members:
                    break
                time.sleep(0.01)
            tasks.pace.note(False, 1e6)  # training is slow, so switching always pays
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    for epoch in range(2):  # the second epoch starts with a sampler again
        report = run(system, epoch)
        assert report.ok, report.reason
        counts = counted(report)
        assert counts["schedule", "switches", ""] == 1
        assert counts["schedule", "rank_drawn", "1"] == 7
        assert (
            counts["schedule", "rank_trained", "0"], counts["schedule", "rank_trained", "1"]
        ) == (4, 3)  # fmt: skip
        steps = [list(s.batches) for s in system.schedule.coordination.steps]
        # If the trainer was late, all was sampled before its first request.
        late = [[0, 1], [2, 3], [4, 5], [6]]
        assert steps in ([[0], [1, 2], [3, 4], [5, 6]], late)
        losses = by_steps(plain, epoch, steps, model, optimizer)
        assert report.loss == pytest.approx(sum(losses.values()) / 7, rel=1e-4)
        for ours, theirs in zip(system.trainer.model.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    assert other.ok and other.digest == one.digest


@pytest.mark.parametrize(
    ("took", "samplers", "trainers"),
    [
        (PhaseTimes(1.0, 3.0, 0.5), 1, 2),  # memory IO is the longer: K = 3, 3 / 4
        (PhaseTimes(9.0, 0.1, 0.1), 2, 1),  # no trainer would be left: rank 0 is one
    ],
)
def test_auto_allocation_follows_the_formula(factored, monkeypatch, took, samplers, trainers):
    right = Launcher._measure

    def measured(self, rank):
        assert isinstance(right(self, rank), PhaseTimes)
        return took

    monkeypatch.setattr(Launcher, "_measure", measured)
    system = factored(1, 2, {"schedule.allocation": "auto"})
    counts = counted(run(system))
    assert (counts["schedule", "samplers", ""], counts["schedule", "trainers", ""]) == (
        samplers, trainers,
    )  # fmt: skip
    assert counts["schedule", "measured_sample_s", ""] == took.sample_s


def test_auto_allocation_measures_an_epoch_without_changing_the_model(factored, small_graph):
    system, plain = factored(1, 1, {"schedule.allocation": "auto"}), make(small_graph, **SMALL)
    (loss, facts, _), (other, drawn, _) = trained(plain, 1)[0], trained(system, 1)[0]
    assert drawn == facts and other == pytest.approx(loss, rel=1e-5)
    counts = counted(run(system, 1))
    assert all(counts["schedule", f"measured_{p}_s", ""] > 0 for p in ("sample", "compute"))


def test_phases_idle_and_waiting_are_reported_by_rank(factored):
    system = factored(1, 2)
    timeline = epoch_timeline(system)
    spans = timeline.spans()
    assert {s.lane for s in spans if s.phase == "sample"} == {"rank 2"}
    assert {s.lane.split()[1] for s in spans if s.phase == "compute"} == {"0", "1"}
    fetched = sorted(s.batch for s in spans if s.phase == "memory_io")
    assert fetched == [0, 1, 2, 3, 4, 5, 6]
    assert all(timeline.begin <= s.begin <= s.end <= timeline.end for s in spans)
    report = system.audit(0)
    counts = counted(report)
    assert counts["schedule", "rank_sample_s", "2"] > 0
    for rank in "01":
        assert counts["schedule", "rank_memory_io_s", rank] > 0
        assert counts["schedule", "rank_compute_s", rank] > 0
        assert ("schedule", "rank_sample_s", rank) not in counts
    for rank in "012":
        assert 0 < counts["schedule", "rank_idle_s", rank] < timeline.wall_s
        assert counts["schedule", "rank_held_bytes", rank] > 1 << 20
    # Imbalance is reported for each role; that of one sampler is 1.
    assert counts["schedule", "rank_imbalance", "samplers"] == 1.0
    assert 1.0 <= counts["schedule", "rank_imbalance", "trainers"] <= 2.0
    assert ("schedule", "rank_imbalance", "") not in counts
    assert counts["schedule", "rank_drawn", "2"] == 7
    assert counts["schedule", "samplers", ""] == 1 and counts["schedule", "trainers", ""] == 2
    assert counts["schedule", "handed_bytes", ""] > 0
    parameters = sum(p.numel() for p in system.trainer.model.parameters())
    assert counts["schedule", "reduce_bytes", ""] == 2 * 4 * 4 * (parameters + 2)
    assert counts["features", "feature_bytes", "host"] == report.unique_nodes * 24 * 4
