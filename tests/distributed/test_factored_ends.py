"""Samplers and trainers that are killed, hang or fail: one error, and no process remains."""

import signal
import time

import pytest
from compose import run
from factored_ranks import factored_systems, shared_memory
from two_processes import alive, signal_if_there

from gnnbench.core import process_activity
from gnnbench.distributed import rank_monitor
from gnnbench.distributed.rank_failure import RankDiedError

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def factored(small_graph):
    with factored_systems(small_graph) as build:
        yield build


@pytest.mark.parametrize("staleness", [0, 3])
@pytest.mark.parametrize("rank", [1, 2], ids=["trainer", "sampler"])
def test_a_killed_rank_ends_the_epoch_and_the_others(factored, rank, staleness):
    system = factored(1, 2, {"schedule.queue": 2, "schedule.staleness": staleness})
    assert run(system).ok
    pids, step = system.schedule.pids, system.trainer.step

    def kill(batch, rows):
        signal_if_there(pids[rank - 1], signal.SIGKILL)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = kill
    began = time.monotonic()
    with pytest.raises(RankDiedError, match=f"rank {rank} died by SIGKILL"):
        run(system, 1)
    assert time.monotonic() - began < 60
    assert not any(map(alive, pids)) and not shared_memory()
    with pytest.raises(RankDiedError, match=f"rank {rank} died"):
        run(system, 2)


@pytest.mark.parametrize("staleness", [0, 3])
@pytest.mark.parametrize("rank", [1, 2], ids=["trainer", "sampler"])
def test_hanging_rank_is_killed_and_reported(factored, monkeypatch, rank, staleness):
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    monkeypatch.setattr(rank_monitor, "LOOK_S", 0.2)
    system = factored(1, 2, {"schedule.queue": 2, "schedule.staleness": staleness})
    assert run(system).ok
    pids, step = system.schedule.pids, system.trainer.step

    def stop(batch, rows):
        signal_if_there(pids[rank - 1], signal.SIGSTOP)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = stop
    with pytest.raises(RankDiedError, match="hangs"):
        run(system, 1)
    assert not any(map(alive, pids)) and not shared_memory()


def test_error_of_rank_0_is_raised_and_ends_all_ranks(factored):
    system = factored(1, 2)
    pids = system.schedule.pids

    def fail(batch, rows):
        raise MemoryError("no room for it")

    system.trainer.step = system.stages.trainer.step = fail
    with pytest.raises(MemoryError, match="no room"):
        run(system)
    assert not any(map(alive, pids)) and not shared_memory()
