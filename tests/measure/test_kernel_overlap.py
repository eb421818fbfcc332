"""Kernels of two processes that run at once."""

import gzip
import json
import subprocess
import sys
import time

import pytest

from gnnbench.measure.kernel_overlap import KernelOverlap, kernel_overlap, kernel_times


def test_kernels_without_copies_in_seconds_of_the_system_clock():
    trace = {
        "baseTimeNanoseconds": 5_000_000_000,
        "traceEvents": [
            {"cat": "kernel", "name": "gather", "ph": "X", "ts": 1000.0, "dur": 500.0},
            {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "ph": "X", "ts": 0.0, "dur": 9000.0},
            {"cat": "cpu_op", "name": "aten::mm", "ph": "X", "ts": 0.0, "dur": 9000.0},
            {"name": "process_name", "ph": "M", "args": {"name": "python"}},
        ],
    }
    ((begin, end),) = kernel_times(trace)
    assert (begin, end) == pytest.approx((5.001, 5.0015))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # one gather from 0 to 4, kernels of the training at 1 to 2 and 3 to 6: from 1 to 4
        ([(0, 4)], [(1, 2), (3, 6)], (3, 2, 2)),
        ([(0, 2), (4, 6)], [(2, 4), (6, 8)], (2, 2, 0)),  # in turn: from 2 to 6
        ([(0, 1), (9, 10)], [(0, 10)], (2, 10, 2)),
        ([(0, 3), (1, 2)], [(0, 3)], (3, 3, 3)),  # kernels of one process, too, may overlap
        ([(0, 1)], [(2, 3)], (0, 0, 0)),  # never at work together
        ([], [(0, 1)], (0, 0, 0)),
    ],
)
def test_overlap(first, second, expected):
    found = kernel_overlap(first, second)
    assert (found.first_s, found.second_s, found.both_s) == pytest.approx(expected)
    swapped = kernel_overlap(second, first)
    assert swapped == KernelOverlap(found.second_s, found.first_s, found.both_s)


PROGRAM = """
import sys, time, torch
from torch.profiler import ProfilerActivity, profile
time.sleep(float(sys.argv[2]))
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    now = time.time()
    torch.ones(10)
profiler.export_chrome_trace(sys.argv[1])
print(now)
"""


def test_times_of_processes_are_on_one_clock(tmp_path):
    """A call of each process is at its wall-clock time, whenever its profiler was started."""
    for wait in ("0", "0.5"):
        path = tmp_path / f"{wait}.json.gz"
        words = [sys.executable, "-c", PROGRAM, str(path), wait]
        begin = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        trace = json.loads(gzip.decompress(path.read_bytes()))
        for event in trace["traceEvents"]:
            if event.get("cat") == "cpu_op":
                event["cat"] = "kernel"
        (first, _), *_ = sorted(kernel_times(trace))
        assert begin - 0.005 < first < time.time()
        assert first - begin < 1.0
