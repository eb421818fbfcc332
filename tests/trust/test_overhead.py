"""What the harness does between the two readings of the wall clock, counted and not timed."""

import sys
from collections import Counter
from pathlib import Path

import torch
from gnnbench.stages.clock import HostClock

from gnnbench.stages import schedule

PACKAGE = str(Path(schedule.__file__).parents[1])


class Recording(HostClock):
    """Profiles Python and C calls from start to stop."""

    def start(self):
        self.calls = Counter()
        super().start()
        sys.setprofile(self._note)

    def stop(self):
        sys.setprofile(None)
        return super().stop()

    def _note(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname")
                       else frame.f_code.co_name] += 1  # fmt: skip
        elif event == "c_call":
            self.calls[argument.__qualname__] += 1


def calls(batches):
    clock = Recording()
    seeds, loss = torch.arange(3), torch.zeros(())
    trace = schedule.run_serial(
        batches=lambda: [seeds] * batches,
        sample=lambda seeds, batch: seeds,
        load=lambda drawn: drawn,
        compute=lambda inputs: loss,
        keep=lambda drawn: drawn,
        clock=clock,
    )
    assert len(trace.kept) == len(trace.losses) == batches
    return clock.calls


def test_a_batch_costs_four_clock_readings_and_two_appends_and_nothing_else():
    few, many = calls(10), calls(110)
    per_batch = {k: (many[k] - few[k]) / 100 for k in many if many[k] != few[k]}
    assert per_batch == {"HostClock.mark": 4, "perf_counter": 4, "list.append": 2} or per_batch == {
        "mark": 4, "perf_counter": 4, "list.append": 2,
    }  # fmt: skip
