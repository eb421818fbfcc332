"""Kernels of two processes that run at once."""

import gzip
import json
import subprocess
import sys
import time

import pytest

from gnnbench.measure.kernel_overlap import Kernel, busy_s, gather_shares, kernels_in

TRACE = {
    "baseTimeNanoseconds": 5_000_000_000,
    "traceEvents": [
        {"cat": "kernel", "name": "gather", "ph": "X", "ts": 1000.0, "dur": 500.25},
        {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "ph": "X", "ts": 0.0, "dur": 9000.0},
        {"cat": "cpu_op", "name": "aten::mm", "ph": "X", "ts": 0.0, "dur": 9000.0},
        {"name": "process_name", "ph": "M", "args": {"name": "python"}},
    ],
}


def test_kernels_without_copies_by_the_system_clock():
    assert kernels_in(TRACE) == [Kernel("gather", 5_001_000_000, 5_001_500_250)]


@pytest.mark.parametrize("missing", sorted(TRACE))
def test_a_trace_without_a_base_time_is_refused(missing):
    with pytest.raises(ValueError, match="not a trace"):
        kernels_in({key: value for key, value in TRACE.items() if key != missing})


def kernels(name, *times):
    return [Kernel(name, begin, end) for begin, end in times]


@pytest.mark.parametrize(
    ("gathers", "training", "shares"),
    [
        ([(0, 4)], [(1, 2), (3, 6)], [0.5]),
        ([(0, 2), (4, 6)], [(2, 4), (6, 8)], [0, 0]),  # in turn
        ([(0, 1), (9, 10)], [(0, 10)], [1, 1]),
        ([(0, 4)], [(0, 2), (1, 3)], [0.75]),  # kernels of the training overlap each other
        ([(2, 3)], [(0, 1), (0, 9)], [1]),
        ([(0, 1)], [(2, 3)], [0]),
        ([(0, 1)], [], [0]),
        ([], [(0, 1)], []),
        ([(1, 1), (2, 4)], [(3, 9)], [0.5]),  # one too short for the clock
    ],
)
def test_shares_of_gathers(gathers, training, shares):
    result = gather_shares(kernels("gather", *gathers), kernels("mm", *training))
    assert result == pytest.approx(shares)


def test_only_the_kernel_with_the_most_time_is_the_gather():
    producer = kernels("fill", (0, 1), (4, 5)) + kernels("gather", (1, 4))
    assert gather_shares(producer, kernels("mm", (1, 4))) == [1]


def test_time_with_a_kernel_counts_once():
    assert busy_s(kernels("mm", (0, 3), (1, 2), (5, 6))) == pytest.approx(4e-9)
    assert busy_s([]) == 0


PROGRAM = """
import sys, time, torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    now = time.time()
    torch.ones(10)
profiler.export_chrome_trace(sys.argv[1])
print(now)
"""


def test_times_of_another_process_are_on_the_system_clock(tmp_path):
    path, before = tmp_path / "trace.json.gz", time.time()
    words = [sys.executable, "-c", PROGRAM, str(path)]
    begin = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    trace = json.loads(gzip.decompress(path.read_bytes()))
    for event in trace["traceEvents"]:
        if event.get("cat") == "cpu_op":
            event["cat"] = "kernel"
    first = min(kernel.begin for kernel in kernels_in(trace)) / 1e9
    assert before < begin - 0.005 < first < time.time()
