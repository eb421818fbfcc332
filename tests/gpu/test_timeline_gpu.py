"""Spans by CUDA events: delayed streams, sums equal to the wall time, and several devices."""

import time
from itertools import pairwise

import pytest
import torch

from gnnbench.measure.timeline import STREAM, CudaClock, Timeline

pytestmark = pytest.mark.gpu

CYCLES = 50_000_000  # tens of milliseconds
LAST = max(torch.cuda.device_count(), 1) - 1


def delay(cycles=CYCLES):
    torch.cuda._sleep(cycles)


@pytest.fixture
def timeline():
    delay(1)  # first launches have loaded everything
    return Timeline(CudaClock("cuda"))


def adds_up(sweep):
    total = sweep.idle + sweep.overlap + sum(sweep.alone.values())
    assert sweep.wall == pytest.approx(total)


def test_spans_measure_the_device_and_not_the_host(timeline):
    timeline.start()
    host = time.perf_counter()
    for batch in range(2):
        with timeline.span("sample", batch):
            delay()
        with timeline.span("compute", batch):
            delay(3 * CYCLES)
    host = time.perf_counter() - host
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.overlap == 0
    assert sweep.busy == sweep.alone
    assert host < sweep.wall / 4  # no mark waits
    assert sweep.busy["compute"] == pytest.approx(3 * sweep.busy["sample"], rel=0.2)
    assert sweep.idle < 0.2 * sweep.wall
    spans = timeline.spans()
    assert [(s.phase, s.lane, s.batch) for s in spans] == [
        (phase, STREAM, batch) for batch in range(2) for phase in ("sample", "compute")
    ]
    assert timeline.begin <= spans[0].begin
    assert all(a.end <= b.begin + 1e-6 for a, b in pairwise(spans))
    assert spans[-1].end <= timeline.end + 1e-6


def test_earlier_work_is_not_part_of_an_epoch(timeline):
    delay(20 * CYCLES)
    timeline.start()
    with timeline.span("sample"):
        delay()
    timeline.stop()
    with_it = timeline.sweep()
    assert with_it.busy["sample"] > with_it.wall / 2


def test_settled_work_is_not_part_of_a_span(timeline):
    timeline.start()
    delay(4 * CYCLES)
    timeline.settle()
    with timeline.span("sample"):
        delay()
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.idle > 2 * sweep.busy["sample"]


def test_epoch_ends_when_every_stream_is_done(timeline):
    side = torch.cuda.Stream()
    timeline.start()
    with timeline.span("sample"):
        with torch.cuda.stream(side):
            delay(4 * CYCLES)
        delay()
    timeline.stop()
    assert side.query()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.idle > 2 * sweep.busy["sample"]  # on the side stream, outside all spans


def test_spans_on_two_streams_overlap(timeline):
    side = torch.cuda.Stream()
    timeline.start()
    with torch.cuda.stream(side), timeline.span("sample", lane="side"):
        delay(2 * CYCLES)
    with timeline.span("compute"):
        delay(2 * CYCLES)
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.overlap > sweep.wall / 2
    assert [s.lane for s in timeline.spans()] == ["side", STREAM]


def test_host_work_in_a_span_counts_while_the_stream_is_idle(timeline):
    timeline.start()
    with timeline.span("memory_io"):
        time.sleep(0.05)
    timeline.stop()
    assert timeline.sweep().busy["memory_io"] >= 0.045


def test_host_work_is_hidden_behind_device_work(timeline):
    timeline.start()
    with timeline.span("compute"):
        delay(4 * CYCLES)
    with timeline.span("sample"):
        time.sleep(0.005)  # the device still works
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.busy["sample"] < 0.004


def test_timelines_of_system_and_harness_are_separate(timeline):
    """As in a worker: the marks of one timeline are read by another."""
    own = Timeline(CudaClock("cuda"))
    own.start()
    with timeline.span("sample"):
        delay()
    timeline.start()  # has no effect on ``own``
    with timeline.span("compute"):
        delay()
    own.stop()
    own.marks = list(timeline.marks)  # the restarted timeline dropped its earlier marks
    sweep = own.sweep()
    adds_up(sweep)
    assert set(sweep.busy) == {"compute"}
    assert sweep.idle > sweep.busy["compute"] / 2


@pytest.mark.parametrize("gpu", [LAST], ids=[f"cuda:{LAST}"])
def test_spans_belong_to_the_cells_device_for_any_current_device(gpu):
    """On a machine with several GPUs the last one works while the first is current."""
    device = torch.device("cuda", gpu)
    with torch.cuda.device(device):
        delay(1)
        named, current = Timeline(CudaClock(device)), Timeline(CudaClock("cuda"))
    for timeline in (
        named,
        current,
    ):  # without a number, the device that was current at construction
        with torch.cuda.device(0):
            timeline.start()
            with timeline.span("sample"), torch.cuda.device(device):
                delay()
            timeline.stop()
            assert torch.cuda.current_device() == 0
        sweep = timeline.sweep()
        adds_up(sweep)
        assert sweep.busy["sample"] > sweep.wall / 2


def test_number_of_finished_spans_is_known_while_others_run(timeline):
    timeline.start()
    assert timeline.passed(0) == 0
    for batch in range(8):
        with timeline.span("compute", batch):
            delay(4 * CYCLES)
    seen = [timeline.passed(0)]
    assert seen[0] < 8  # the host has started all of them
    while seen[-1] < 8:
        seen.append(timeline.passed(seen[-1]))
        time.sleep(0.01)
    assert seen == sorted(seen) and len(set(seen)) > 2
    timeline.stop()
    assert timeline.passed(8) == 8
