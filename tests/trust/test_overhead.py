"""What the harness does between the two readings of the wall clock, counted and not timed."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import gnnbench
from gnnbench.core.cell import Until
from gnnbench.measure.timeline import HostClock, Timeline
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.serial import SerialSchedule

PACKAGE = str(Path(gnnbench.__file__).parent)


class Recording(HostClock):
    """Profiles Python and C calls from start to stop."""

    def start(self):
        self.calls = Counter()
        sys.setprofile(self._note)
        return super().start()

    def stop(self):
        sys.setprofile(None)
        return super().stop()

    def _note(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[frame.f_code.co_name] += 1
        elif event == "c_call":
            self.calls[argument.__qualname__] += 1


def calls(batches, until):
    clock, kept = Recording(), []
    timeline = Timeline(clock)
    stages = Stages(
        SimpleNamespace(sample=lambda seeds, epoch, number: number),
        SimpleNamespace(load=lambda batch: batch),
        SimpleNamespace(step=lambda batch, rows: None) if until is Until.COMPUTE else None,
        lambda batch, rows: kept.append(batch),
    )
    timeline.start()
    SerialSchedule().epoch(0, [None] * batches, stages, timeline, until)
    timeline.stop()
    assert len(kept) == batches
    return clock.calls


@pytest.mark.parametrize(("until", "phases"), [(Until.MEMORY_IO, 2), (Until.COMPUTE, 3)])
def test_a_batch_costs_two_marks_a_phase_and_nothing_else(until, phases):
    few, many = calls(10, until), calls(110, until)
    per_batch = {k: (many[k] - few[k]) / 100 for k in many if many[k] != few[k]}
    assert per_batch.pop("list.append") == phases + 1  # the spans, and what is kept above
    assert per_batch == {
        "span": phases, "__init__": phases, "__enter__": phases, "__exit__": phases,
        "start": 2 * phases, "perf_counter": 2 * phases,  # a mark of the host's clock is its start
    }  # fmt: skip


def test_a_batch_that_is_only_sampled_costs_nothing():
    few, many = calls(10, Until.SAMPLE), calls(110, Until.SAMPLE)
    assert {k: many[k] - few[k] for k in many if many[k] != few[k]} == {"list.append": 100}
