"""A worker whose system has a producer process: their lifetime, and failure of either."""

import os
import signal
import time
from functools import partial

import psutil
import pytest

from gnnbench.harness.process import WorkerFailed


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
def started(start_worker):
    """Workers of a cell of ``zero-copy`` that are set up."""
    return partial(start_worker, "zero-copy")


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
