"""Spans by events: delayed streams, what adds up to the wall time, and whose device it is."""

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
    delay(1)  # what a first launch loads is there
    return Timeline(CudaClock("cuda"))


def adds_up(sweep):
    total = sweep.idle + sweep.overlap + sum(sweep.alone.values())
    assert sweep.wall == pytest.approx(total)


def test_spans_are_the_devices_and_not_the_hosts(timeline):
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


def test_what_was_enqueued_before_is_no_part_of_an_epoch(timeline):
    delay(20 * CYCLES)
    timeline.start()
    with timeline.span("sample"):
        delay()
    timeline.stop()
    with_it = timeline.sweep()
    assert with_it.busy["sample"] > with_it.wall / 2


def test_what_is_settled_is_no_part_of_a_span(timeline):
    timeline.start()
    delay(4 * CYCLES)
    timeline.settle()
    with timeline.span("sample"):
        delay()
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.idle > 2 * sweep.busy["sample"]


def test_an_epoch_ends_when_every_stream_is_done(timeline):
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
    assert sweep.idle > 2 * sweep.busy["sample"]  # on the side, nobody's span


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


def test_work_on_the_host_inside_a_span_counts_while_the_stream_waits(timeline):
    timeline.start()
    with timeline.span("memory_io"):
        time.sleep(0.05)
    timeline.stop()
    assert timeline.sweep().busy["memory_io"] >= 0.045


def test_work_on_the_host_is_hidden_behind_the_devices(timeline):
    timeline.start()
    with timeline.span("compute"):
        delay(4 * CYCLES)
    with timeline.span("sample"):
        time.sleep(0.005)  # the device still works
    timeline.stop()
    sweep = timeline.sweep()
    adds_up(sweep)
    assert sweep.busy["sample"] < 0.004


def test_a_system_keeps_to_its_timeline_and_the_harness_to_its_own(timeline):
    """As a worker does: spans of one timeline, read within another."""
    own = Timeline(CudaClock("cuda"))
    own.start()
    with timeline.span("sample"):
        delay()
    timeline.start()  # in vain
    with timeline.span("compute"):
        delay()
    own.stop()
    own.marks = list(timeline.marks)  # what began anew forgot its marks
    sweep = own.sweep()
    adds_up(sweep)
    assert set(sweep.busy) == {"compute"}
    assert sweep.idle > sweep.busy["compute"] / 2


@pytest.mark.parametrize("gpu", [LAST], ids=[f"cuda:{LAST}"])
def test_spans_are_of_the_cells_device_whichever_is_current(gpu):
    """On a machine of several GPUs the last one works while the first is current."""
    device = torch.device("cuda", gpu)
    with torch.cuda.device(device):
        delay(1)
        named, current = Timeline(CudaClock(device)), Timeline(CudaClock("cuda"))
    for timeline in (named, current):  # without a number it is what was current when it was made
        with torch.cuda.device(0):
            timeline.start()
            with timeline.span("sample"), torch.cuda.device(device):
                delay()
            timeline.stop()
            assert torch.cuda.current_device() == 0
        sweep = timeline.sweep()
        adds_up(sweep)
        assert sweep.busy["sample"] > sweep.wall / 2


def test_how_many_spans_are_over_is_known_while_others_wait(timeline):
    timeline.start()
    assert timeline.passed(0) == 0
    for batch in range(8):
        with timeline.span("compute", batch):
            delay(4 * CYCLES)
    seen = [timeline.passed(0)]
    assert seen[0] < 8  # the host has begun them all
    while seen[-1] < 8:
        seen.append(timeline.passed(seen[-1]))
        time.sleep(0.01)
    assert seen == sorted(seen) and len(set(seen)) > 2
    timeline.stop()
    assert timeline.passed(8) == 8
