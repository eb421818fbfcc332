"""The figure of schedules, from rows that the tests write."""

import pytest
from plot_rows import plot_cell

from gnnbench.analysis import metrics as m
from gnnbench.analysis.plots import draw, schedules


def cell(name, schedule, wall=3.0, features="uva", **values):
    recipe = {"features": {"name": features}, "schedule": schedule}
    more = {"device": "cuda", "batches": 4, "seeds": 350, "epoch_wall_s": wall, **values}
    return plot_cell(name, "schedules", "compute", recipe, **more)


def metrics_of(name, bound, of_bound, alone=(0.2, 0.5, 0.4), interval=(2.5, 3.5)):
    wall = m.metric(name, m.EPOCH, m.WALL, 3.0)
    return [
        {**wall, **dict(zip(("low", "high"), interval, strict=True))},
        m.metric(name, m.EPOCH, m.BOUND, bound),
        m.metric(name, m.EPOCH, m.OF_BOUND, of_bound),
        *(
            m.metric(name, p, m.PROBED, s)
            for p, s in zip(("sample", "memory_io", "compute"), alone, strict=True)
        ),
    ]


SERIAL, PREFETCH = {"name": "serial"}, {"name": "prefetch", "depth": 1, "sms": 0}


def ticks(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


ARROW = "interval cut off"


def legend(figure):
    return [t.get_text() for t in figure.legends[0].get_texts()]


def levels(ax):
    """Where lines across bars are: their ends, then their values."""
    return [
        (*line.get_ydata(), *line.get_xdata()) for line in ax.lines if line.get_gid() == "level"
    ]


def column(ax):
    return [t.get_text() for t in ax.texts if t.get_gid() == "column" and t.get_text()]


def test_phases_run_alone_precede_schedules_with_bounds(run):
    cells = [cell("a", SERIAL), cell("b", PREFETCH, 2.31)]
    metrics = [*metrics_of("a", 2.1, 1.43), *metrics_of("b", 2.1, 1.1, interval=(None, None))]
    figure = schedules.figure(run(cells, metrics))
    (ax,) = figure.axes
    assert ARROW not in legend(figure)
    alone = ["sample alone", "memory IO alone", "compute alone"]
    assert ticks(ax) == [*alone, "prefetch", "serial"]  # the fastest schedule first
    # 3.5 whole batches of each phase, then the measured wall times.
    widths = [p.get_width() for p in ax.patches]
    assert widths == pytest.approx([0.7, 1.75, 1.4, 2.31, 3.0])
    assert levels(ax) == [
        pytest.approx((2.604, 3.396, 2.1, 2.1)),
        pytest.approx((3.604, 4.396, 2.1, 2.1)),
    ]
    assert column(ax) == ["1.10x", "1.43x"]


def test_a_bound_above_the_measured_time_is_none(run):
    """Phases that were slower alone than in an epoch do not bound it: 0.87x of a bound is none."""
    figure = schedules.figure(run([cell("a", PREFETCH)], metrics_of("a", 3.4, 0.87)))
    (ax,) = figure.axes
    assert levels(ax) == []
    assert column(ax) == ["no bound: phases were slower alone"]
    assert not any("bound" in text for text in legend(figure))


def test_long_interval_does_not_flatten_the_bars(run):
    vast = metrics_of("a", 2.1, 1.43, interval=(0.01, 900.0))
    figure = schedules.figure(run([cell("a", SERIAL)], vast))
    (ax,) = figure.axes
    assert 3.0 < ax.get_xlim()[1] < 6.5
    assert ARROW in legend(figure) and column(ax) == ["1.43x"]


def test_cells_that_differ_in_more_than_the_schedule_have_other_panels(run):
    cells = [
        cell(f"{store}{sms}", {**PREFETCH, "sms": sms}, features=store)
        for store in ("uva", "match")
        for sms in (0, 8)
    ]
    metrics = [row for c in cells for row in metrics_of(c["id"], 2.1, 1.1)]
    axes = schedules.figure(run(cells, metrics)).axes
    assert [ax.get_title() for ax in axes] == ["baseline features=uva", "baseline features=match"]
    assert [ticks(ax)[3:] for ax in axes] == [["prefetch sms=0", "prefetch sms=8"]] * 2


def test_cell_without_a_bound_has_only_a_bar(run):
    cells = [cell("a", SERIAL), cell("b", PREFETCH), cell("c", PREFETCH, None, status="crash")]
    cells.append(cell("d", PREFETCH, 9.0, status="incorrect"))
    (ax,) = schedules.figure(run(cells, metrics_of("b", 2.1, 1.1))).axes
    assert ticks(ax)[3:] == ["serial", "prefetch", "prefetch", "prefetch"]
    assert len(levels(ax)) == 1 and column(ax) == ["1.10x"]
    failed = [t.get_text() for t in ax.texts if t.get_gid() == "no result"]
    assert failed == ["no result: crash", "no result: incorrect"]
    assert len(ax.patches) == 3 + 2


def test_unreliable_schedule_is_marked(run):
    cells = [cell("a", SERIAL), cell("b", PREFETCH, doubtful="busy")]
    (ax,) = schedules.figure(run(cells, metrics_of("b", 2.1, 1.1))).axes
    assert ticks(ax)[3:] == ["serial", "prefetch (?)"]


def test_runs_without_bounds_have_no_figure(run, tmp_path):
    assert schedules.figure(run([cell("a", SERIAL)], [])) is None
    assert draw(tmp_path, ["schedules"]) == []
