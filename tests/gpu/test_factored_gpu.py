"""Samplers and trainers on separate GPUs, and the ranks of T_SOTA."""

import copy
import random
import signal
import time

import pytest
import torch
from compose import counted, make, run, run_alike
from two_processes import alive, signal_if_there

from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.measure.timeline import Timeline

pytestmark = pytest.mark.gpu(count=2)

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches
STORES = {
    "uva": {"features": "uva"},
    "host": {"features": "host"},
    "cache": {"features": "cache", "features.ratio": 0.3},
}


def factored(samplers=1, trainers=1, **settings):
    return {
        "sampler": "gnnlab", "schedule": "factored", "schedule.samplers": samplers,
        "schedule.trainers": trainers, **settings,
    }  # fmt: skip


@pytest.fixture
def ranks(small_graph):
    """Builds systems of several ranks, one at a time, and checks that nothing of them remains."""
    made = []

    def end():
        for system in made:
            pids = system.schedule.pids
            system.close()
            assert not any(map(alive, pids))
        made.clear()

    def build(settings, **changes):
        end()
        made.append(make(small_graph, settings=settings, **{**SMALL, **changes}))
        return made[-1]

    yield build
    end()


def looked_at(system, epoch):
    timeline = Timeline.on("cuda")
    timeline.start()
    report = system.verify(epoch, timeline)
    timeline.stop()
    assert report.ok, report.reason
    return report, timeline


@pytest.mark.parametrize(("store", "depth"), [("uva", 2), ("host", 0), ("cache", 1)])
def test_sampler_and_trainer_do_the_work_of_one_gpu(store, depth, ranks, small_graph):
    plain = make(small_graph, settings={"sampler": "gnnlab", **STORES[store]}, **SMALL)
    system = ranks(factored(**STORES[store], **{"schedule.depth": depth}))
    assert system.check().digest == plain.check().digest
    for epoch in range(3):
        ours, theirs = run_alike(system, plain, epoch)
        rows = {
            key: n for key, n in counted(ours).items() if key[:2] == ("features", "feature_bytes")
        }
        assert rows == {key: counted(theirs)[key] for key in rows} != {}
    (ours, timeline), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""
    slack = 1e-3  # event clocks of two GPUs, each aligned by readings of the host clock
    spans = timeline.spans()
    assert {s.lane for s in spans if s.phase == "sample"} == {"rank 1"}
    assert all(timeline.begin - slack <= s.begin <= s.end <= timeline.end + slack for s in spans)
    assert system.recheck(9) == ""


def test_delays_cause_no_early_read_or_write(ranks, small_graph):
    """Random delays on the trainer's GPU, with few buffers and many batches."""
    system = ranks(factored(features="uva", **{"schedule.queue": 2}), batch_size=2)
    table, step, late = small_graph.features.cuda(), system.trainer.step, random.Random(3)
    seen = []

    def slow(batch, rows):
        if late.random() < 0.2:
            torch.cuda._sleep(int(late.random() * 2e7))
        first = batch.blocks[0]
        seen.append((first.src_nodes.clone(), rows.clone(), first.indices.clone()))
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    for epoch in range(3):
        seen.clear()
        report = run(system, epoch)
        assert report.ok, report.reason
        assert counted(report)["schedule", "queue_most", ""] <= 2
        assert len(seen) == 100
        for nodes, rows, local in seen:
            assert torch.equal(rows, table[nodes.long()])
            assert local.numel() == 0 or int(local.max()) < nodes.numel()


def test_standby_sampler_trains_over_nccl(ranks, small_graph):
    standby = {"schedule.standby": True, "schedule.queue": 10, "schedule.depth": 0}
    system = ranks(factored(features="uva", **standby), max_batches=9)
    step = system.trainer.step

    def slow(batch, rows):
        if batch.number == 0:
            tasks, deadline = system.schedule.coordination.scheduler.tasks, time.monotonic() + 20
            while 1 not in tasks._share_requests and time.monotonic() < deadline:
                time.sleep(0.01)
            tasks.pace.note(False, 1e6)  # a slow trainer: standby always pays off
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    for epoch in range(2):  # the second epoch begins with a sampler again
        before = copy.deepcopy(system.trainer.model.state_dict())
        report = run(system, epoch)  # the report checks identical weights on both GPUs
        assert report.ok, report.reason
        counts = counted(report)
        assert counts["schedule", "switches", ""] == 1 and counts["schedule", "updates", ""] == 5
        assert [counts["schedule", "rank_trained", rank] for rank in "01"] == [5, 4]
        after = system.trainer.model.state_dict()
        assert any(not torch.equal(before[name], after[name]) for name in after)
    settings = {"sampler": "gnnlab", "features": "uva"}
    plain = make(small_graph, settings=settings, **SMALL, max_batches=9)
    (ours, _), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""


@pytest.mark.gpu(count=3)
@pytest.mark.parametrize(("samplers", "trainers"), [(1, 2), (2, 1)])
def test_three_gpus(samplers, trainers, ranks, small_graph):
    system = ranks(factored(samplers, trainers, features="uva"))
    plain = make(small_graph, settings={"sampler": "gnnlab", "features": "uva"}, **SMALL)
    for epoch in range(2):
        report = run(system, epoch)
        assert report.ok, report.reason
        assert counted(report)["schedule", "updates", ""] == 10 / trainers
    (ours, _), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""


def test_auto_allocation_measures_on_a_gpu(ranks):
    system = ranks(factored(features="uva", **{"schedule.allocation": "auto"}))
    counts = counted(run(system))
    assert (counts["schedule", "samplers", ""], counts["schedule", "trainers", ""]) == (1, 1)
    for phase in ("sample", "memory_io", "compute"):
        assert counts["schedule", f"measured_{phase}_s", ""] > 0


@pytest.mark.parametrize("depth", [0, 1])
def test_marked_rows_are_those_of_one_gpu(depth, ranks, small_graph):
    cache = {"features": "cache", "features.ratio": 0.3, "features.table": "host"}
    plain = make(small_graph, settings={"sampler": "gnnlab", **cache}, **SMALL)
    system = ranks(factored(**cache, **{"schedule.marks": True, "schedule.depth": depth}))
    assert system.check().digest == plain.check().digest
    system.stages.store._lookup.find = None  # no epoch looks a node up on the trainer
    for epoch in range(3):
        ours, theirs = run_alike(system, plain, epoch)
        counts = counted(ours)
        for where in ("cache", "host_copy"):
            key = ("features", "feature_bytes", where)
            assert counts[key] == counted(theirs)[key] > 0
        assert all(counts["schedule", f"sample_{p}_s", "1"] > 0 for p in ("draw", "mark", "copy"))
        assert [counts["schedule", "rank_cached_rows", rank] for rank in "01"] == [120, 0]
    (ours, _), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({}, [400, 0]),
        ({"schedule.standby": True}, [400, 400]),  # a small table fits next to the topology
        ({"schedule.standby": True, "schedule.standby_ratio": 0.1}, [400, 40]),
        ({"schedule.allocation": "auto"}, [400, 0]),
        ({"schedule.marks": True, "features.table": "host"}, [400, 0]),
    ],
)
def test_each_role_derives_its_cache_from_its_memory(settings, rows, ranks, small_graph):
    system = ranks(factored(features="cache", **{"features.ratio": "auto", **settings}))
    setup = {name: value for _, name, _, value in system.setup_counts}
    assert setup["cache_ratio"] == 1.0 and setup["uncached_peak_bytes"] > 0
    report = run(system)
    assert report.ok, report.reason
    counts = counted(report)
    assert [counts["schedule", "rank_cached_rows", rank] for rank in "01"] == rows
    looked_at(system, 7)


@pytest.mark.parametrize(("depth", "standby"), [(0, False), (1, False), (0, True)])
def test_asynchronous_updates_on_gpus(depth, standby, ranks, small_graph):
    """A sampler and a trainer, alone or with a standby trainer."""
    system = ranks(
        factored(
            features="uva",
            **{"schedule.staleness": 3, "schedule.depth": depth, "schedule.standby": standby,
               "schedule.queue": 10},
        )
    )  # fmt: skip
    step = system.trainer.step

    def slow(batch, rows):
        tasks, deadline = system.schedule.coordination.scheduler.tasks, time.monotonic() + 20
        while standby and not (tasks.switched or 1 in tasks._share_requests):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        tasks.pace.note(False, 1e6)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    plain = make(small_graph, settings={"sampler": "gnnlab", "features": "uva"}, **SMALL)
    for epoch in range(3):
        report, theirs = run(system, epoch), run(plain, epoch)  # weights of all ranks are equal
        assert report.ok, report.reason
        assert report.sampled_edges == theirs.sampled_edges
        counts = counted(report)
        assert counts["schedule", "updates", ""] == 10
        if standby:
            assert counts["schedule", "rank_trained", "1"] > 0
        else:  # the updates of one trainer are those of one process
            assert report.loss == pytest.approx(theirs.loss, rel=1e-3)
            assert counts["schedule", "stale_most", "0"] == 0
    (ours, _), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""


@pytest.mark.gpu(count=3)
def test_two_trainers_update_asynchronously(ranks, small_graph):
    system = ranks(factored(1, 2, features="uva", **{"schedule.staleness": 2}))
    for epoch in range(3):
        before = copy.deepcopy(system.trainer.model.state_dict())
        report = run(system, epoch)
        assert report.ok, report.reason
        counts = counted(report)
        assert counts["schedule", "updates", ""] == 10
        assert max(counts["schedule", "stale_most", rank] for rank in "01") <= 4
        after = system.trainer.model.state_dict()
        assert any(not torch.equal(before[name], after[name]) for name in after)


def test_a_killed_sampler_ends_the_epoch(ranks):
    system = ranks(factored(features="uva", **{"schedule.queue": 2}))
    assert run(system).ok
    (pid,), step = system.schedule.pids, system.trainer.step

    def kill(batch, rows):
        signal_if_there(pid, signal.SIGKILL)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = kill
    began = time.monotonic()
    with pytest.raises(RankDiedError, match="rank 1 died by SIGKILL"):
        run(system, 1)
    assert time.monotonic() - began < 60 and not alive(pid)


def test_ranks_of_t_sota_do_the_work_of_one_gpu(ranks, small_graph):
    ratio = {"features.ratio": 0.3}
    plain = make(small_graph, "tsota", ratio, **SMALL)
    system = ranks({"schedule": "data-parallel", **ratio}, system="tsota")
    for epoch in range(3):
        ours, theirs = run(system, epoch), run(plain, epoch)
        assert ours.ok and theirs.ok, ours.reason
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-3)
        assert ours.sampled_edges == theirs.sampled_edges
    (ours, _), (theirs, _) = (looked_at(one, 7) for one in (system, plain))
    assert ours.digest == theirs.digest != ""
