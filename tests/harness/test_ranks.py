"""A worker whose system has several ranks: their lifetime, and failures of ranks."""

import os
import signal

import psutil
import pytest

from gnnbench.core import process_activity
from gnnbench.harness import worker_pipe
from gnnbench.harness.process import WorkerFailed
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
def started(start_worker):
    """Workers of a cell of several ranks that are set up."""
    return lambda schedule=DATA_PARALLEL: start_worker("baseline", *schedule)


def test_ranks_end_with_their_worker(started):
    worker = started()
    ranks = ranks_of(worker)
    assert len(ranks) == 2
    assert worker.call("check")["ok"]
    timing = worker.timed("epoch", epoch=5)
    assert set(timing["busy"]) == {"sample", "memory_io", "compute"}
    assert worker.call("audit", epoch=5)["ok"]
    assert worker.call("verify", epoch=6)["ok"]
    # Every rank maps the same feature file; none has its own copy.
    assert not any("/dev/shm" in m.path for p in ranks for m in p.memory_maps())
    files = [{m.path for m in p.memory_maps() if "features" in m.path} for p in ranks]
    assert files[0] == files[1] != set()
    worker.close()
    assert gone(ranks)


def test_killed_rank_is_a_failure_of_the_worker_and_a_new_worker_runs(started):
    """The ranks of the new worker end when it is killed."""
    worker = started()
    ranks = ranks_of(worker)
    ranks[0].kill()
    with pytest.raises(WorkerFailed, match="the process of rank") as raised:
        worker.timed("epoch", epoch=5)
    assert raised.value.failure.status == "crash"
    assert "died by SIGKILL" in raised.value.failure.reason
    assert gone(ranks)
    worker.kill()
    again = started(TWO_RANKS)
    assert again.timed("epoch", epoch=5) and again.call("audit", epoch=5)["ok"]
    ranks = ranks_of(again)
    assert len(ranks) == 1
    os.kill(again.pid, signal.SIGKILL)  # the worker alone, not its group
    assert gone(ranks)


def test_stopped_worker_is_killed_with_its_ranks(started, monkeypatch):
    """The worker is rank 0, so no other rank can report it."""
    worker = started(TWO_RANKS)
    ranks = ranks_of(worker)
    assert len(ranks) == 1
    os.kill(worker.pid, signal.SIGSTOP)
    monkeypatch.setattr(process_activity, "SILENCE_S", 1.0)
    monkeypatch.setattr(worker_pipe, "LOOK_S", 0.2)
    with pytest.raises(WorkerFailed, match="stopped by a signal for 1 s") as raised:
        worker.timed("epoch", epoch=5)
    assert raised.value.failure.status == "crash"
    assert gone(ranks) and not worker.alive


def test_killed_sampler_rank_is_a_failure_of_the_worker(started):
    worker = started(FACTORED)
    ranks = ranks_of(worker)
    assert len(ranks) == 2
    assert worker.call("check")["ok"]
    assert worker.timed("epoch", epoch=5) and worker.call("audit", epoch=5)["ok"]
    ranks[1].kill()  # the others train, and wait for it
    with pytest.raises(WorkerFailed, match="the process of rank 2 died by SIGKILL") as raised:
        worker.timed("epoch", epoch=6)
    assert raised.value.failure.status == "crash"
    assert gone(ranks)
    shared = [m.path for m in psutil.Process(worker.pid).memory_maps(grouped=False)]
    assert not any(NAME in path for path in shared)
