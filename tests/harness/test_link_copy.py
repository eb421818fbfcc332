"""Measurement of the link's copy rate after the epochs of a trial."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness import probe_run
from gnnbench.harness.failures import Failure
from gnnbench.harness.process import WorkerFailed
from gnnbench.harness.trial_checks import copy_over_link
from gnnbench.harness.trial_context import CellFailed, TrialContext
from gnnbench.schema.samples import EpochSample, read_counts

CELL = Cell(
    "e", "baseline", "d", "gcn", device="cuda", composed=True,
    recipe={"schedule": {"name": "prefetch"}},
)  # fmt: skip


class FakeWorker:
    """A worker that records its calls and reports a copy time, or fails."""

    def __init__(self, seconds=0.5, failure=None):
        self.seconds, self.failure, self.calls = seconds, failure, []

    def call(self, op, **arguments):
        self.calls.append((op, arguments))
        if self.failure is not None:
            raise WorkerFailed(self.failure)
        counts = [["features", "copy_time_s", "host_copy", self.seconds]]
        return {"counts": counts if self.seconds else []}


def epoch(batches=10, **bytes_by_place):
    counts = [["features", "feature_bytes", where, n] for where, n in bytes_by_place.items()]
    return EpochSample(batches=batches, counts=read_counts(counts))


@pytest.fixture
def copied():
    """``of(...)`` calls copy_over_link for a trial; ``failures`` are the recorded failures."""
    failures = []
    journal = SimpleNamespace(fail=lambda cell, failure: failures.append(failure))
    context = SimpleNamespace(journal=journal)
    context.fail = TrialContext.fail.__get__(context)
    runner = SimpleNamespace(failures=failures)
    runner.of = lambda *arguments: copy_over_link(context, *arguments)
    return runner


def test_copy_has_the_bytes_that_cross_the_link(copied):
    worker = FakeWorker()
    samples = [epoch(zero_copy=600, host_copy=400, cache=5000), epoch(zero_copy=1000)]
    assert copied.of(CELL, worker, samples) == {"bytes": 1000, "seconds": 0.5}
    assert worker.calls == [("copies", {"served": {"host_copy": 1000}, "batches": 10})]


def test_copy_of_a_long_epoch_is_limited_with_equal_batch_size(copied, monkeypatch):
    monkeypatch.setattr(probe_run, "MAX_COPIED_BYTES", 300)
    worker = FakeWorker()
    assert copied.of(CELL, worker, [epoch(zero_copy=1000)])["bytes"] == 300
    assert worker.calls[0][1] == {"served": {"host_copy": 300}, "batches": 3}


@pytest.mark.parametrize(
    ("cell", "counts"),
    [
        (CELL, {"cache": 9, "device": 9, "peer": 9}),
        (replace(CELL, composed=False), {"zero_copy": 9}),
        (replace(CELL, fanouts=(), until="memory_io"), {"zero_copy": 9}),  # copies after each epoch
        (replace(CELL, recipe={"schedule": {"name": "data-parallel"}}), {"zero_copy": 9}),
    ],
    ids=["no rows", "unverified", "gathers", "ranks"],
)
def test_no_copy_where_no_rows_cross_the_link(copied, cell, counts):
    worker = FakeWorker()
    assert copied.of(cell, worker, [epoch(**counts)]) is None
    assert worker.calls == []


def test_copy_on_a_full_gpu_is_skipped_without_a_failure(copied):
    full = FakeWorker(failure=Failure("oom_gpu", "the GPU's memory is exhausted"))
    assert copied.of(CELL, full, [epoch(zero_copy=9)]) is None
    assert copied.failures == []
    with pytest.raises(CellFailed):
        copied.of(CELL, FakeWorker(failure=Failure("crash", "it died")), [epoch(zero_copy=9)])
    assert [failure.status for failure in copied.failures] == ["crash"]
    assert copied.of(CELL, FakeWorker(seconds=0), [epoch(zero_copy=9)]) is None
