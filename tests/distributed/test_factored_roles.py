"""Memory by role, marks of cached nodes, and asynchronous updates, on CPU ranks."""

import time
from itertools import pairwise

import pytest
import torch
from compose import counted, epoch_timeline, make, run
from factored_ranks import SMALL

from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.usefixtures("one_thread")

NODES = 400


def cached(report, ranks):
    counts = counted(report)
    return [counts["schedule", "rank_cached_rows", str(rank)] for rank in range(ranks)]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"features.ratio": 0.25}, [100, 0]),
        ({"features.ratio": 0.25, "schedule.allocation": "auto"}, [100, 0]),
        ({"features.ratio": 0.25, "schedule.standby": True}, [100, 100]),
        (
            {"features.ratio": 0.25, "schedule.standby": True, "schedule.standby_ratio": 0.1},
            [100, 40],
        ),
        (
            {"features.ratio": 0.25, "schedule.standby": True, "schedule.standby_ratio": 0.1,
             "schedule.allocation": "auto"},
            [100, 40],
        ),
        ({"features.ratio": "auto", "features.memory_gib": 50 * 96 / 2**30}, [50, 0]),
        (
            {"features.ratio": "auto", "features.memory_gib": 50 * 96 / 2**30,
             "schedule.standby": True},
            [50, 50],
        ),
    ],
)  # fmt: skip
def test_each_role_holds_the_cache_that_it_needs(factored, settings, rows):
    system = factored(1, 1, settings, system="gnnlab")
    assert system.check().ok
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert cached(report, 2) == rows
    assert system.verify(5, Timeline.on("cpu")).ok


@pytest.mark.parametrize(("samplers", "trainers"), [(1, 1), (1, 2), (2, 1)])
def test_marks_change_neither_samples_nor_rows_nor_hits(factored, small_graph, samplers, trainers):
    shared = {"features.ratio": 0.2}
    plain = make(small_graph, "gnnlab", {**shared, "schedule": "serial"}, **SMALL)
    system = factored(samplers, trainers, {**shared, "schedule.marks": True}, system="gnnlab")
    values = []
    find = type(system.stages.store._lookup).find
    assert system.check().ok
    system.stages.store._lookup.find = lambda ids: (
        values.append(ids) or find(system.stages.store._lookup, ids)
    )
    for epoch in range(2):
        ours, theirs = run(system, epoch), run(plain, epoch)
        assert ours.ok, ours.reason
        assert ours.sampled_edges == theirs.sampled_edges
        for where in ("cache", "host"):
            key = ("features", "feature_bytes", where)
            assert counted(ours)[key] == counted(theirs)[key] > 0
        if trainers == 1:
            assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    assert values == []  # no epoch looks a node up
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    assert other.ok, other.reason
    assert other.digest == one.digest != ""


def test_a_standby_trainer_looks_up_its_own_cache(factored):
    """Marks are of the trainers' cache; rows of a wrong slot would fail the audit."""
    system = factored(
        1, 1,
        {"features.ratio": 0.5, "schedule.marks": True, "schedule.standby": True,
         "schedule.standby_ratio": 0.1, "schedule.queue": 7, "schedule.depth": 0},
        system="gnnlab",
    )  # fmt: skip
    trains_late(system)
    report = system.verify(5, Timeline.on("cpu"))
    assert report.ok, report.reason
    assert counted(report)["schedule", "rank_trained", "1"] > 0


def trains_late(system, seconds=0.0):
    """Have rank 0 wait in its first step until the sampler stands by."""
    step = system.trainer.step

    def slow(batch, rows):
        tasks, deadline = system.schedule.coordination.scheduler.tasks, time.monotonic() + 20
        while not (tasks.switched or 1 in tasks._share_requests) and time.monotonic() < deadline:
            time.sleep(0.01)
        tasks.pace.note(False, 1e6)  # training is slow, so switching always pays
        time.sleep(seconds)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow


@pytest.mark.parametrize("marks", [False, True])
def test_the_phase_sample_is_reported_in_its_parts(factored, marks):
    system = factored(1, 1, {"features.ratio": 0.2, "schedule.marks": marks}, system="gnnlab")
    timeline = epoch_timeline(system)
    counts = counted(system.audit(0))
    parts = {name: n for (_, name, rank), n in counts.items() if rank == "1"}
    names = ["draw", "mark", "copy"] if marks else ["draw", "copy"]
    assert ("sample_mark_s" in parts) is marks
    total = sum(parts[f"sample_{name}_s"] for name in names)
    assert all(parts[f"sample_{name}_s"] > 0 for name in names)
    assert total <= sum(s.end - s.begin for s in timeline.spans() if s.phase == "sample")


@pytest.mark.parametrize(
    ("samplers", "trainers", "depth"), [(1, 1, 0), (1, 2, 1), (2, 2, 0), (1, 3, 2)]
)
def test_asynchronous_updates_train_on_each_batch_once(
    factored, small_graph, samplers, trainers, depth
):
    plain = make(small_graph, **SMALL)
    system = factored(samplers, trainers, {"schedule.staleness": 2, "schedule.depth": depth})
    assert system.check().details["batches_an_update"] == 0
    weights = []
    for epoch in range(3):
        ours, theirs = run(system, epoch), run(plain, epoch)
        assert ours.ok, ours.reason  # all ranks end with the same weights
        assert (ours.batches, ours.seeds) == (7, 200)
        assert ours.sampled_edges == theirs.sampled_edges
        assert ours.unique_nodes == theirs.unique_nodes
        counts = counted(ours)
        assert counts["schedule", "updates", ""] == 7
        assert ("schedule", "reduce_bytes", "") not in counts
        most = [counts["schedule", "stale_most", str(rank)] for rank in range(trainers)]
        assert max(most) <= (trainers - 1) * 2 * 2
        weights.append(torch.cat([p.detach().flatten() for p in system.trainer.model.parameters()]))
        if trainers == 1:  # it makes all updates
            assert most == [0] and ours.loss == pytest.approx(theirs.loss, rel=1e-4)
    assert not any(torch.equal(a, b) for a, b in pairwise(weights))
    one, other = (s.verify(5, Timeline.on("cpu")) for s in (plain, system))
    assert other.ok, other.reason
    assert other.digest == one.digest != ""
    assert run(system, 6).ok


def test_asynchronous_updates_of_others_reach_the_worker(factored):
    """Rank 0 trains on one batch of seven; its weights have all seven updates."""
    system = factored(1, 2, {"schedule.staleness": 6, "schedule.depth": 0})
    step = system.trainer.step

    def slow(batch, rows):
        step(batch, rows)
        tasks, deadline = system.schedule.coordination.scheduler.tasks, time.monotonic() + 20
        while tasks._finished[1] < 6 and time.monotonic() < deadline:
            time.sleep(0.01)

    system.trainer.step = system.stages.trainer.step = slow
    report = run(system)
    assert report.ok, report.reason
    counts = counted(report)
    assert [counts["schedule", "rank_trained", rank] for rank in "01"] == [1, 6]
    # Rank 1 may have made its first update before rank 0 read any weights.
    assert counts["schedule", "stale_most", "0"] == counts["schedule", "stale_updates", "0"]
    assert counts["schedule", "stale_most", "0"] in (5, 6)


def test_a_standby_trainer_makes_asynchronous_updates(factored, small_graph):
    system = factored(
        1, 1,
        {"schedule.staleness": 4, "schedule.standby": True, "schedule.queue": 7,
         "schedule.depth": 0, "schedule.profit": "published"},
    )  # fmt: skip
    trains_late(system, 0.05)
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        counts = counted(report)
        assert counts["schedule", "switches", ""] == 1
        assert counts["schedule", "rank_trained", "1"] >= 2
        assert counts["schedule", "updates", ""] == 7


def test_staleness_without_a_model_changes_nothing(factored):
    report = run(factored(1, 2, {"schedule.staleness": 1}, until="memory_io"))
    assert report.ok, report.reason
    assert report.batches == 7
