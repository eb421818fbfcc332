"""Ranks with a producer, or a sampler and a producer, each: the work of ranks without them."""

import os
import signal
import time

import psutil
import pytest
from compose import counted, epoch_timeline, run, without_times
from two_processes import OWN, alive

from gnnbench.core.cell import Until
from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.measure.timeline import Timeline
from gnnbench.systems.runtime.find import find

pytestmark = pytest.mark.usefixtures("one_thread")

WHOLE = {"schedule": "data-parallel", "schedule.batches": "whole"}
NINE = {"batch_size": 24, "fanouts": (3, 2)}  # nine batches of 200 seeds, the last one of 8


def own_work(report):
    """Return counts but those of processes and buffers, and ratios of times."""
    others = {*OWN, "rank_held_bytes", "rank_imbalance"}
    return {k: n for k, n in without_times(counted(report)).items() if k[1] not in others}


def with_children(pid):
    """Return a process and those that it has started, and theirs."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


@pytest.mark.parametrize(("processes", "way"), [(2, "ddp"), (3, "flat")])
def test_ranks_train_on_what_their_producers_gather(group, processes, way):
    settings = {**WHOLE, "schedule.gradients": way}
    reports = []
    for more in ({}, {"schedule.processes": processes}):
        system = group(2, {**settings, **more}, **NINE)
        assert system.check().ok
        reports.append([run(system, epoch) for epoch in range(3)])
        reports[-1].append(system.verify(5, Timeline.on("cpu")))
    for theirs, ours in zip(*reports, strict=True):
        assert ours.ok and theirs.ok, ours.reason
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-6)
        assert ours.digest == theirs.digest
        assert own_work(ours) == own_work(theirs)
        assert counted(ours)["schedule", "copied_bytes", ""] == 0
    assert ours.digest != "" and ours.peak_alloc_bytes > theirs.peak_alloc_bytes


def test_processes_of_a_rank_have_lanes(group):
    system = group(2, {**WHOLE, "schedule.processes": 3}, **NINE)
    timeline = epoch_timeline(system)
    spans = timeline.spans()
    for rank in range(2):
        own = list(range(rank, 9, 2))
        for lane, phase in (("sampler", "sample"), ("producer", "memory_io")):
            at = [s.batch for s in spans if (s.lane, s.phase) == (f"rank {rank} {lane}", phase)]
            assert at == own
        trained = [s.batch for s in spans if (s.lane, s.phase) == (f"rank {rank}", "compute")]
        assert [n for n in trained if n >= 0] == own
    assert system.audit(0).ok


def test_fewer_batches_than_ranks(group):
    system = group(3, {**WHOLE, "schedule.processes": 2}, batch_size=500)
    assert run(system).ok and run(system, 1).ok


def test_a_producer_that_dies_ends_all_ranks(own_group):
    """Rank 1 is a process; it and rank 0 have a producer each, and that a sampler."""
    system = own_group(2, {**WHOLE, "schedule.processes": 3}, **NINE)
    assert run(system).ok
    (rank,) = system.schedule.pids
    of_rank_0 = with_children(system.schedule.own._client.process.pid)
    of_rank_1 = with_children(rank)
    assert (len(of_rank_0), len(of_rank_1)) == (2, 3)
    (producer,) = psutil.Process(rank).children()
    os.kill(producer.pid, signal.SIGKILL)
    with pytest.raises(Exception, match="the producer's process died by SIGKILL") as failed:
        run(system, 1)
    assert not isinstance(failed.value, RankDiedError)
    system.close()
    deadline = time.monotonic() + 20
    while any(map(alive, of_rank_0 + of_rank_1)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, of_rank_0 + of_rank_1))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"schedule.batches": "split"}, "give schedule.batches=whole, or processes=1"),
        ({"features": "match"}, "or row-copies-together or gpu or cache and order=as-drawn"),
        ({"sampler": "dgl"}, "sampler 'dgl' draws others"),
        ({"schedule.share": 10}, "schedule.share needs a GPU"),
    ],
)
def test_what_a_producer_of_a_rank_cannot_run_is_refused(settings, reason):
    settings = {**WHOLE, "schedule.processes": 2, **settings}
    assert reason in find("baseline").resolved(settings, "cpu", Until.COMPUTE).unsupported


def test_shares_and_samplers_of_ranks_on_gpus():
    shares = {"schedule.share": 10, "schedule.trainer_share": 90}

    def refused(**more):
        return find("zero-copy").resolved({**WHOLE, **shares, **more}, "cuda", Until.COMPUTE)

    assert "give schedule.processes=2 or 3, or leave" in refused().unsupported
    three = {"schedule.processes": 3}
    assert "give sampler.topology=cpu instead of gpu" in refused(**three).unsupported
    assert not refused(**three, **{"sampler.topology": "cpu"}).unsupported
