"""The serial schedule: order of calls, spans, and records."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Until, phases
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.serial import SerialSchedule


def run(seeds, until):
    """Run an epoch of stages that record their calls; return calls and spans."""
    calls = []

    def note(name, answer):
        def call(*args):
            calls.append((name, *args))
            return answer(*args)

        return call

    stages = Stages(
        SimpleNamespace(sample=note("sample", lambda s, epoch, n: f"batch {n}")),
        SimpleNamespace(load=note("load", lambda b: f"rows of {b}")),
        SimpleNamespace(step=note("step", lambda b, rows: None)),
        note("keep", lambda b, rows: None),
    )
    if until < Until.COMPUTE:
        stages.trainer = None
    if until < Until.MEMORY_IO:
        stages.store = None
    timeline = Timeline.on("cpu")
    timeline.start()
    SerialSchedule().epoch(6, seeds, stages, timeline, until)
    timeline.stop()
    return calls, timeline


SEEDS = [torch.tensor([3]), torch.tensor([5])]


def test_batches_run_one_after_the_other():
    calls, timeline = run(SEEDS, Until.COMPUTE)
    assert calls == [
        ("sample", SEEDS[0], 6, 0), ("load", "batch 0"), ("step", "batch 0", "rows of batch 0"),
        ("keep", "batch 0", "rows of batch 0"),
        ("sample", SEEDS[1], 6, 1), ("load", "batch 1"), ("step", "batch 1", "rows of batch 1"),
        ("keep", "batch 1", "rows of batch 1"),
    ]  # fmt: skip
    spans = timeline.spans()
    assert [(s.phase, s.batch) for s in spans] == [
        (p, n) for n in (0, 1) for p in phases("compute")
    ]
    ends = [t for s in spans for t in (s.begin, s.end)]
    assert ends == sorted(ends)
    assert timeline.sweep().overlap == 0


def test_an_epoch_that_ends_with_the_rows():
    calls, timeline = run(SEEDS, Until.MEMORY_IO)
    assert [c[0] for c in calls] == ["sample", "load", "keep"] * 2
    assert calls[-1] == ("keep", "batch 1", "rows of batch 1")
    assert [(s.phase, s.batch) for s in timeline.spans()] == [
        (p, n) for n in (0, 1) for p in ("sample", "memory_io")
    ]


def test_sampling_alone_is_one_span():
    calls, timeline = run(SEEDS, Until.SAMPLE)
    assert [c[0] for c in calls] == ["sample", "keep"] * 2
    assert calls[1] == ("keep", "batch 0", None)
    assert [(s.phase, s.batch) for s in timeline.spans()] == [("sample", -1)]


@pytest.mark.parametrize("until", list(Until))
def test_no_batches(until):
    calls, timeline = run([], until)
    assert calls == []
    assert set(timeline.sweep().busy) == ({"sample"} if until is Until.SAMPLE else set())
