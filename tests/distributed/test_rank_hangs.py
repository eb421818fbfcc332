"""A rank that is stopped or stuck at any time ends all ranks soon, and no port stays open."""

import os
import signal
import threading
import time
from pathlib import Path

import planted_ranks
import psutil
import pytest
from compose import make, run, timed
from rank_groups import SMALL
from torch.distributed.distributed_c10d import _world
from two_processes import alive

from gnnbench.core import heartbeat, process_activity, registry
from gnnbench.distributed import rank_monitor
from gnnbench.distributed.dispatcher import Dispatcher
from gnnbench.distributed.launcher import Launcher
from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.distributed.rank_session import RankSession

pytestmark = pytest.mark.usefixtures("one_thread")

PARTITIONED = {"schedule.partition": "vanilla", "schedule.method": "random"}


def listening(*pids):
    """Return the addresses and ports at which processes listen."""
    processes = [psutil.Process(), *map(psutil.Process, pids)]
    listening_sockets = [
        c for p in processes for c in p.net_connections("inet") if c.status == "LISTEN"
    ]
    return {(c.laddr.ip, c.laddr.port) for c in listening_sockets}


@pytest.fixture
def hurried(monkeypatch):
    """When called, ranks count as hung after 1 s. Also checks that no port stays open."""
    before = listening()
    monkeypatch.setattr(rank_monitor, "LOOK_S", 0.2)
    yield lambda: monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    assert listening() <= before
    _world.group_count = 0  # torch keeps a group that failed to initialize, in this process only


@pytest.fixture
def faulty(small_graph, monkeypatch):
    """Builds systems whose rank 1 fails at one of its draws; not set up yet."""
    monkeypatch.setenv(registry.extra_variable("sampler"), planted_ranks.SAMPLER)
    registry.entries.cache_clear()
    made = []

    def build(draw, fault, settings=None, **changes):
        monkeypatch.setenv(planted_ranks.FAULT, f"1 {draw} {fault}")
        all_settings = {"schedule": "data-parallel", "sampler": "faulty", **(settings or {})}
        made.append(make(small_graph, settings=all_settings, setup=False, **{**SMALL, **changes}))
        return made[-1]

    yield build
    for system in made:
        system.schedule.close()
    monkeypatch.undo()
    registry.entries.cache_clear()


def lost(system, does, match):
    """``does`` raises within the promised time, and no process remains."""
    began = time.monotonic()
    with pytest.raises(RankDiedError, match=match):
        does()
    assert time.monotonic() - began < 60
    assert not any(map(alive, system.schedule.pids))


def stop(system):
    os.kill(system.schedule.pids[-1], signal.SIGSTOP)


@pytest.mark.parametrize(
    ("at", "of"), [("_join", Launcher), ("run", RankSession), ("_measured_allocation", Dispatcher)]
)
def test_rank_stopped_before_the_first_epoch(faulty, hurried, monkeypatch, at, of):
    """During setup, before rendezvous, and before it has measured an epoch."""
    settings = {"schedule": "factored", "schedule.allocation": "auto"} if of is Dispatcher else {}
    system, right = faulty(-1, "nothing", settings), getattr(of, at)

    def stopped(self, *args):
        stop(system)
        hurried()
        return right(self, *args)

    monkeypatch.setattr(of, at, stopped)
    lost(system, system.setup, "hangs")


@pytest.mark.parametrize(
    ("until", "schedule"), [("memory_io", "data-parallel"), ("compute", "factored")]
)
def test_rank_stopped_between_the_parts_of_an_epoch(faulty, hurried, until, schedule):
    system = faulty(-1, "nothing", {"schedule": schedule}, until=until)
    system.setup()
    assert run(system).ok
    stop(system)
    hurried()
    lost(system, lambda: run(system, 1), "rank 1 was stopped for 1 s: it hangs")


def test_rank_stopped_between_its_epoch_and_the_audit(group, hurried):
    system = group(2)
    timed(system, 1)
    stop(system)
    hurried()
    lost(system, lambda: system.audit(1), "rank 1 was stopped for 1 s: it hangs")


def test_rank_stopped_while_parts_are_compared(group, hurried):
    system = group(2, PARTITIONED)
    stop(system)
    hurried()
    lost(system, system.check, "hangs")


@pytest.mark.parametrize(
    ("draw", "settings", "until"),
    [
        (0, {}, "compute"),  # during setup
        (1, {"schedule": "factored", "schedule.allocation": "auto"}, "compute"),
        (2, {}, "memory_io"),
        (2, {}, "compute"),
        (2, {"schedule": "factored", "schedule.samplers": 1}, "compute"),
    ],
)
def test_rank_that_sleeps_is_reported_as_hanging(faulty, hurried, draw, settings, until):
    """Its process runs and its socket is open; only its lack of progress shows the hang."""
    system = faulty(draw, "sleeps", settings, until=until)

    def goes():
        if draw > 1:
            system.setup()
        hurried()
        if draw <= 1:
            system.setup()
        for epoch in range(3):
            run(system, epoch)

    lost(system, goes, "(rank 1 did nothing for|did not come to the others within) 1 s: it hangs")


def test_hang_of_a_sampler_is_detected_while_another_fills_the_queue(faulty, hurried):
    """One of two samplers is stopped; requests of others are not its progress."""
    settings = {"schedule": "factored", "schedule.samplers": 2, "schedule.queue": 64}
    system = faulty(-1, "nothing", settings, batch_size=4)
    system.setup()
    step, trained = system.trainer.step, []

    def slow(batch, rows):
        trained.append(batch.number)
        if len(trained) == 2:
            stop(system)
            hurried()
        time.sleep(0.2)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = slow
    lost(system, lambda: run(system), "rank 2 was stopped for 1 s: it hangs")
    assert len(trained) < 50  # of as many batches: not when all that could be was done


def test_rank_that_dies_between_requests_is_reported_by_the_next_one(group, monkeypatch):
    monkeypatch.setattr(rank_monitor, "SETTLE_S", 0.2)  # then the monitor kills the others
    system = group(3)
    pids = system.schedule.pids
    os.kill(pids[0], signal.SIGKILL)
    end = time.monotonic() + 30
    while alive(pids[1]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(pids[1])
    lost(system, lambda: run(system, 1), "rank 1 died by SIGKILL")


def test_memory_error_of_a_rank_is_raised(faulty):
    system = faulty(2, "memory")
    system.setup()
    with pytest.raises(MemoryError, match="planted"):
        run(system)
    assert not any(map(alive, system.schedule.pids))


def test_hang_of_rank_0_is_reported_by_the_monitor(faulty, hurried, monkeypatch):
    monkeypatch.setattr(rank_monitor, "GRACE_S", 0.5)
    system, reported = faulty(-1, "nothing"), []
    system.stuck = reported.append
    system.setup()
    hurried()
    step = system.trainer.step

    def sleeps(batch, rows):
        until = time.monotonic() + 30
        while not reported and time.monotonic() < until:
            time.sleep(0.1)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = sleeps
    lost(system, lambda: run(system), "rank 0 did nothing for 1 s: it hangs")
    assert [str(e) for e in reported] == ["rank 0 did nothing for 1 s: it hangs; run again"]


@pytest.mark.parametrize("settings", [{"schedule": "factored"}, {"features": "sharded"}])
def test_ranks_listen_on_loopback_only_until_they_end(faulty, settings):
    before = listening()
    system = faulty(-1, "nothing", {**settings, "sampler": "hop-by-hop"})
    system.setup()
    assert run(system).ok
    opened = listening(*system.schedule.pids) - before
    assert {address for address, _ in opened} == {"127.0.0.1"}
    system.close()
    assert listening() <= before


def test_ports_threads_and_memory_are_released_after_a_failure(group):
    before = listening()
    system = group(2)
    os.kill(system.schedule.pids[0], signal.SIGKILL)
    with pytest.raises(RankDiedError) as error:
        run(system)
    del error
    assert listening() <= before
    assert not any(thread.name == rank_monitor.NAME for thread in threading.enumerate())
    assert heartbeat.NAME not in Path("/proc/self/maps").read_text()
