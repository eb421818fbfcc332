"""The summary of a trace: own times by phase, kernels."""

import pytest

from gnnbench.measure.trace_summary import summarize


def event(name, start, length, thread=1, kind="cpu_op"):
    return {"ph": "X", "cat": kind, "name": name, "tid": thread, "ts": start, "dur": length}


def lines(events):
    return [line.split() for line in summarize(events).splitlines()]


RANGES = [
    event("sample 0", 0, 1000, kind="user_annotation"),
    event("compute 0", 2000, 4000, kind="user_annotation"),
]


def test_inner_calls_are_not_counted_twice():
    table = lines([*RANGES, event("outer", 2000, 3000), event("inner", 2500, 1000),
                   event("inner", 4000, 500)])  # fmt: skip
    assert ["1.500", "50.0%", "1", "compute", "outer"] in table
    assert ["1.500", "50.0%", "2", "compute", "inner"] in table


@pytest.mark.parametrize(
    "start,thread,phase",
    [(0, 1, "sample"), (1500, 1, "outside"), (2000, 1, "compute"), (3000, 9, "compute")],
)
def test_calls_belong_to_the_phase_that_is_open(start, thread, phase):
    table = lines([*RANGES, event("call", start, 100, thread)])
    assert ["0.100", "100.0%", "1", phase, "call"] in table


def test_a_call_of_a_thread_with_ranges_belongs_to_its_own():
    prefetch = event("sample 1", 2500, 1000, thread=2, kind="user_annotation")
    table = lines([*RANGES, prefetch, event("a", 2600, 100, 1), event("b", 2600, 100, 2)])
    assert ["0.100", "50.0%", "1", "compute", "a"] in table
    assert ["0.100", "50.0%", "1", "sample", "b"] in table


def test_kernels_and_copies_have_a_table_and_the_rest_is_summed():
    kernels = [event(f"k{n:02}", n, 1000 + n, 7, "kernel") for n in range(14)]
    copies = [event("Memcpy HtoD", 0, 9000, 7, "gpu_memcpy")]
    table = lines([*RANGES, *kernels, *copies])
    assert ["9.000", "39.0%", "1", "GPU", "Memcpy", "HtoD"] in table
    assert ["3.003", "13.0%", "all", "others"] in table


def test_an_empty_trace_has_no_calls():
    assert summarize([]).startswith("calls, by the time spent in themselves:")
