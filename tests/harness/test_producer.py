"""A worker whose system has a producer process: their lifetime, and failure of either."""

import os
import signal
import time

import psutil
import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.harness.launch import make_request
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.shared_cache import SharedMemoryCache


def producer_of(worker):
    """The one process that a worker has started."""
    (producer,) = psutil.Process(worker.pid).children(recursive=True)
    return producer


def gone(process):
    deadline = time.monotonic() + 20
    while process.is_running() and time.monotonic() < deadline:
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return not process.is_running()


@pytest.fixture
def started(tmp_path):
    """Workers of a cell of ``zero-copy`` that are set up."""
    over = Overrides(
        profile="smoke", systems=("zero-copy",), datasets=("products~twin@0.001",),
        options=("batch_size=64", "fanouts=[3,2]"),
    )  # fmt: skip
    (cell, *_) = make_request("breakdown", over, tmp_path).plan.cells
    cache, workers = SharedMemoryCache(tmp_path, 60.0), []
    assert cache.prepare(cell) is None

    def start():
        worker = cache.worker(cell)
        workers.append(worker)
        worker.open(cache.graph(cell))
        worker.call("setup")
        return worker

    yield start
    for worker in workers:
        worker.kill()


def test_producer_ends_with_its_worker(started):
    worker = started()
    producer = producer_of(worker)
    timing = worker.timed("epoch", epoch=5)
    assert set(timing["busy"]) == {"sample", "memory_io", "compute"}
    report = worker.call("audit", epoch=5)
    assert report["ok"] and report["peak_alloc_bytes"] > 0
    assert worker.call("verify", epoch=6)["ok"]
    worker.close()
    assert gone(producer)

    worker = started()
    producer = producer_of(worker)
    os.kill(worker.pid, signal.SIGKILL)  # the worker alone, not its group
    assert gone(producer)


def test_death_of_the_producer_is_a_failure_of_the_worker(started):
    worker = started()
    producer = producer_of(worker)
    producer.kill()
    with pytest.raises(WorkerFailed, match="the producer's process died") as raised:
        worker.timed("epoch", epoch=5)
    assert raised.value.failure.status == "crash"
    assert "the producer's process died by SIGKILL" in raised.value.failure.reason
