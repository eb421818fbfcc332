"""Spans of phases and their totals, with expected values written by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnbench.measure.timeline import HOST, CudaClock, HostClock, Span, Timeline, sweep


def span(phase, begin, end, lane=HOST):
    return Span(phase, lane, 0, begin, end)


@pytest.mark.parametrize(
    ("spans", "busy", "alone", "overlap", "idle"),
    [
        ([], {}, {}, 0, 10),
        ([span("a", 2, 5)], {"a": 3}, {"a": 3}, 0, 7),
        # adjacent: no overlap, no idle time
        ([span("a", 0, 4), span("b", 4, 10)], {"a": 4, "b": 6}, {"a": 4, "b": 6}, 0, 0),
        # one inside the other
        ([span("a", 1, 9), span("b", 3, 5)], {"a": 8, "b": 2}, {"a": 6, "b": 0}, 2, 2),
        ([span("a", 1, 6), span("b", 4, 9)], {"a": 5, "b": 5}, {"a": 3, "b": 3}, 2, 2),
        # three at once from 4 to 5, two from 3 to 4 and from 5 to 7
        (
            [span("a", 1, 5), span("b", 3, 7), span("c", 4, 8)],
            {"a": 4, "b": 4, "c": 4}, {"a": 2, "b": 0, "c": 1}, 4, 3,
        ),
        # the same phase on two lanes is one phase, busy once, and no overlap
        ([span("a", 1, 5, "x"), span("a", 3, 8, "y")], {"a": 7}, {"a": 7}, 0, 3),
        # the first of two spans of a phase overlaps another phase
        (
            [span("a", 0, 4, "x"), span("a", 2, 6, "y"), span("b", 3, 8)],
            {"a": 6, "b": 5}, {"a": 3, "b": 2}, 3, 2,
        ),
        # clipped at both ends; outside; of length 0
        (
            [span("a", -3, 2), span("b", 8, 99), span("c", -5, -1), span("d", 12, 13)],
            {"a": 2, "b": 2, "c": 0, "d": 0}, {"a": 2, "b": 2, "c": 0, "d": 0}, 0, 6,
        ),
        ([span("a", 4, 4), span("b", 3, 6)], {"a": 0, "b": 3}, {"a": 0, "b": 3}, 0, 7),
        ([span("a", 0, 10), span("b", 0, 10)], {"a": 10, "b": 10}, {"a": 0, "b": 0}, 10, 0),
    ],
)  # fmt: skip
def test_totals_of_spans(spans, busy, alone, overlap, idle):
    totals = sweep(spans, 0, 10)
    assert (totals.wall, totals.overlap, totals.idle) == (10, overlap, idle)
    assert (totals.busy, totals.alone) == (busy, alone)


# Sums of eighths are exact.
times = st.integers(-16, 96).map(lambda n: n / 8)
some_spans = st.lists(
    st.builds(
        lambda phase, lane, ends: Span(phase, lane, 0, min(ends), max(ends)),
        st.sampled_from("abc"),
        st.sampled_from(("x", "y")),
        st.tuples(times, times),
    ),
    max_size=12,
)


@given(some_spans, st.randoms(use_true_random=False))
def test_totals_add_up_to_the_wall_time(spans, random):
    totals = sweep(spans, 0, 10)
    assert totals.wall == totals.idle + sum(totals.alone.values()) + totals.overlap
    assert set(totals.alone) == set(totals.busy) == {s.phase for s in spans}
    assert min(totals.idle, totals.overlap) >= 0
    for phase, busy in totals.busy.items():
        assert 0 <= totals.alone[phase] <= busy <= totals.wall
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert sweep(shuffled, 0, 10) == totals


@given(some_spans)
def test_busy_is_the_length_of_the_union(spans):
    """Compared with sets of eighths of a second."""
    totals = sweep(spans, 0, 10)
    cells = {
        phase: {
            n
            for s in spans
            if s.phase == phase
            for n in range(int(max(s.begin, 0) * 8), int(min(s.end, 10) * 8))
        }
        for phase in totals.busy
    }
    assert totals.busy == {phase: len(c) / 8 for phase, c in cells.items()}
    for phase, own in cells.items():
        others = set().union(*(c for p, c in cells.items() if p != phase))
        assert totals.alone[phase] == len(own - others) / 8
    assert totals.idle == 10 - len(set().union(*cells.values())) / 8


class FakeClock:
    """Ticks once per reading; only ``read`` turns marks into times."""

    lane = "fake"

    def __init__(self):
        self.now, self.settled = 100, 0

    def start(self):
        self.now += 1
        return float(self.now)

    def mark(self):
        self.now += 1
        return self.now

    def settle(self):
        self.settled += 1
        self.now += 10

    stop = start

    def read(self, marks):
        return [float(m) for m in marks]


def test_timeline_reads_its_clock_around_epoch_and_spans():
    clock = FakeClock()
    timeline = Timeline(clock)
    timeline.start()  # 101
    with timeline.span("sample", 0):  # 102
        pass  # 103
    timeline.settle()  # ten ticks outside of spans
    with timeline.span("compute", 0, lane="other"), timeline.span("sample", 1):  # 114, 115
        pass  # 116
    timeline.stop()  # 118, after the end of compute at 117
    assert timeline.spans() == [
        ("sample", "fake", 0, 102, 103),
        ("sample", "fake", 1, 115, 116),
        ("compute", "other", 0, 114, 117),
    ]
    assert timeline.wall_s == 17 and clock.settled == 1
    totals = timeline.sweep()
    assert totals.busy == {"sample": 2, "compute": 3}
    assert totals.alone == {"sample": 1, "compute": 2}
    assert (totals.overlap, totals.idle) == (1, 13)
    timeline.start()  # restarted: 119
    timeline.stop()
    assert timeline.spans() == [] and timeline.wall_s == 1


def test_spans_of_another_process_are_times():
    """Also next to events, which are placed between the ends of the epoch."""

    class Event(int):
        def elapsed_time(self, other):
            return float(other - self)  # ms

    clock = CudaClock("cuda:0")
    clock._first, clock._last, clock._begin, clock._end = Event(100), Event(900), 50.0, 50.4
    for timeline, own in ((Timeline(FakeClock()), (102, 103)), (Timeline(clock), (50.1, 50.3))):
        marks = (102, 103) if isinstance(timeline.clock, FakeClock) else (Event(300), Event(700))
        timeline.marks.append((("compute", "own", 1), *marks))
        timeline.add([Span("sample", "producer", 4, 50.25, 50.5)])
        compute, sample = timeline.spans()
        assert compute[:3] == ("compute", "own", 1) and compute[3:] == pytest.approx(own)
        assert sample == ("sample", "producer", 4, 50.25, 50.5)


def test_span_that_ends_with_an_error_is_kept():
    timeline = Timeline(FakeClock())
    timeline.start()
    with pytest.raises(ZeroDivisionError), timeline.span("sample"):
        raise ZeroDivisionError
    timeline.stop()
    assert [s.batch for s in timeline.spans()] == [-1]


def test_host_clock_spans_are_within_the_wall_time():
    timeline = Timeline.on("cpu")
    assert isinstance(timeline.clock, HostClock)
    timeline.start()
    for batch in range(3):
        with timeline.span("sample", batch):
            sum(range(1000))
    timeline.stop()
    spans, totals = timeline.spans(), timeline.sweep()
    assert [s.lane for s in spans] == [HOST] * 3
    ends = [t for s in spans for t in (s.begin, s.end)]
    assert ends == sorted(ends) and timeline.begin <= ends[0] and ends[-1] <= timeline.end
    assert 0 < totals.busy["sample"] <= totals.wall
    assert math.isclose(totals.wall, totals.idle + totals.busy["sample"])
