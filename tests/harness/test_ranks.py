"""A worker whose system is several ranks: their life together, a killed one, and going on."""

import os
import signal

import psutil
import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.core import process_activity
from gnnbench.harness import worker_pipe
from gnnbench.harness.launch import make_request
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.kernels.interprocess import NAME


def ranks_of(worker):
    """The processes that a worker has started."""
    return psutil.Process(worker.pid).children(recursive=True)


def gone(processes):
    return not psutil.wait_procs(processes, timeout=20)[1]


DATA_PARALLEL = ("baseline.schedule=data-parallel", "baseline.schedule.ranks=3")
TWO_RANKS = (DATA_PARALLEL[0], "baseline.schedule.ranks=2")
FACTORED = ("baseline.schedule=factored", "baseline.schedule.trainers=2")


@pytest.fixture
def started(tmp_path):
    """Workers of a cell of several ranks that are set up."""
    keeper, workers = SharedMemoryCache(tmp_path, 60.0), []

    def start(schedule=DATA_PARALLEL):
        over = Overrides(
            profile="smoke", systems=("baseline",), datasets=("products~twin@0.001",),
            options=("batch_size=64", "fanouts=[3,2]", *schedule),
        )  # fmt: skip
        (cell, *_) = make_request("breakdown", over, tmp_path).plan.cells
        assert keeper.prepare(cell) is None
        worker = keeper.worker(cell)
        workers.append(worker)
        worker.open(keeper.graph(cell))
        worker.call("setup")
        return worker

    yield start
    for worker in workers:
        worker.kill()


def test_ranks_live_as_long_as_the_worker_and_leave_nothing(started):
    worker = started()
    ranks = ranks_of(worker)
    assert len(ranks) == 2
    assert worker.call("check")["ok"]
    timing = worker.timed("epoch", epoch=5)
    assert set(timing["busy"]) == {"sample", "memory_io", "compute"}
    assert worker.call("audit", epoch=5)["ok"]
    assert worker.call("verify", epoch=6)["ok"]
    # The graph's table is mapped by every rank: none has a file of its own, or a copy in memory.
    assert not any("/dev/shm" in m.path for p in ranks for m in p.memory_maps())
    files = [{m.path for m in p.memory_maps() if "features" in m.path} for p in ranks]
    assert files[0] == files[1] != set()
    worker.close()
    assert gone(ranks)


def test_a_killed_rank_is_the_workers_failure_and_a_new_life_goes_on(started):
    """The new worker's ranks end when it is killed."""
    worker = started()
    ranks = ranks_of(worker)
    ranks[0].kill()
    with pytest.raises(WorkerFailed, match="the process of rank") as told:
        worker.timed("epoch", epoch=5)
    assert told.value.failure.status == "crash"
    assert "died by SIGKILL" in told.value.failure.reason
    assert gone(ranks)
    worker.kill()
    again = started(TWO_RANKS)
    assert again.timed("epoch", epoch=5) and again.call("audit", epoch=5)["ok"]
    ranks = ranks_of(again)
    assert len(ranks) == 1
    os.kill(again.pid, signal.SIGKILL)  # the worker alone, not its group
    assert gone(ranks)


def test_a_worker_that_is_stopped_is_ended_with_its_ranks(started, monkeypatch):
    """Nobody below it can tell: it is rank 0."""
    worker = started(TWO_RANKS)
    ranks = ranks_of(worker)
    assert len(ranks) == 1
    os.kill(worker.pid, signal.SIGSTOP)
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    monkeypatch.setattr(worker_pipe, "LOOK_S", 0.2)
    with pytest.raises(WorkerFailed, match="stopped by a signal for 1 s") as told:
        worker.timed("epoch", epoch=5)
    assert told.value.failure.status == "crash"
    assert gone(ranks) and not worker.alive


def test_a_killed_sampler_is_the_workers_failure_and_leaves_nothing(started):
    worker = started(FACTORED)
    ranks = ranks_of(worker)
    assert len(ranks) == 2
    assert worker.call("check")["ok"]
    assert worker.timed("epoch", epoch=5) and worker.call("audit", epoch=5)["ok"]
    ranks[1].kill()  # the others train, and wait for it
    with pytest.raises(WorkerFailed, match="the process of rank 2 died by SIGKILL") as told:
        worker.timed("epoch", epoch=6)
    assert told.value.failure.status == "crash"
    assert gone(ranks)
    shared = [m.path for m in psutil.Process(worker.pid).memory_maps(grouped=False)]
    assert not any(NAME in path for path in shared)
