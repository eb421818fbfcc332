"""The figure of scalability, from rows that the tests write."""

import json

import pytest
from plot_rows import plot_cell

from gnnbench.analysis.plots import draw, scalability


def cell(name, system="baseline", **values):
    times = {"seeds": 100, "judged_s": 2.0, "ci_low_s": 1.0, "ci_high_s": 4.0}
    sizes = {"model": "gcn", "batch_size": 64, "fanouts": "5/5", "nodes": 1000, "feature_dim": 32}
    more = {"system": system, **sizes, **times, **values}
    return plot_cell(name, "scalability", "compute", {}, **more)


@pytest.fixture
def swept(run, tmp_path):
    def make(cells, **sweeps):
        sweeps = {
            name: [{"values": {axis: v}, "cells": ids} for v, ids in points]
            for name, (axis, points) in sweeps.items()
        }
        (tmp_path / "run.json").write_text(json.dumps({"sweeps": sweeps}))
        return run(cells, [])

    return make


def lines(ax):
    """Points of every line that joins them, by colour."""
    return {
        line.get_color(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in ax.lines
        if line.get_lw() == 1.2 and line.get_marker() == "None"
    }


def ticks(ax):
    return dict(zip(ax.get_xticks(), (t.get_text() for t in ax.get_xticklabels()), strict=True))


BLUE, ORANGE = scalability.style.PALETTE[:2]
BATCHES = [
    cell("a8", batch_size=8, seeds=16), cell("b8", "dgl", batch_size=8, seeds=8),
    cell("a64"), cell("b64", "dgl", judged_s=4.0),
    cell("a16k", batch_size=16000, seeds=400, judged_s=1.0),
    cell("b16k", "dgl", batch_size=16000, seeds=None, judged_s=None, status="oom_host"),
]  # fmt: skip
BY_BATCH = ("batch_size", [(8, ["a8", "b8"]), (16000, ["a16k", "b16k"]), (64, ["a64", "b64"])])


def test_a_line_for_each_system_and_a_cross_for_a_failure(swept):
    figure = scalability.figure(swept(BATCHES, batch_size=BY_BATCH))
    (ax,) = figure.axes
    assert ax.get_title() == "batch size" and ax.get_xscale() == "log"
    assert lines(ax) == {
        BLUE: ([8, 64, 16000], [8.0, 50.0, 400.0]), ORANGE: ([8, 64], [4.0, 25.0]),
    }  # fmt: skip
    assert ticks(ax) == {8: "8", 64: "64", 16000: "16k"}
    assert ax.get_ylabel() == "seeds per second of wall time"
    assert [(t.get_text(), t.get_color(), t.xy[0]) for t in ax.texts] == [
        ("oom_host", ORANGE, 16000)
    ]
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == ["baseline", "dgl", "no result: status"]
    assert "2 threads" in figure.get_suptitle()
    assert "around" not in figure.get_suptitle()


def test_unreliable_point_is_marked(swept):
    cells = [cell("a", batch_size=8), cell("b", doubtful="busy")]
    figure = scalability.figure(swept(cells, batch_size=("batch_size", [(8, ["a"]), (64, ["b"])])))
    assert [(t.get_text(), t.xy) for t in figure.axes[0].texts] == [("(?)", (64, 50.0))]
    assert figure.legends[0].get_texts()[-1].get_text().startswith("(?)")


def test_intervals_are_those_of_the_time_and_cut_off_with_an_arrow(swept):
    wide = [cell("a8", batch_size=8, ci_low_s=-1.0, ci_high_s=2.5), cell("a64", ci_high_s=3.0)]
    run = swept(wide, batch_size=("batch_size", [(8, ["a8"]), (64, ["a64"])]))
    figure = scalability.figure(run)
    (ax,) = figure.axes
    ends = [
        tuple(line.get_ydata())
        for line in ax.lines
        if line.get_lw() == 0.8 and line.get_gid() is None
    ]
    # 100 seeds in 2.5 s, in no time at all, in 3 s and in 1 s; at most twice the highest rate.
    assert ends == [pytest.approx(e) for e in ((50, 40), (50, 100), (50, 100 / 3), (50, 100))]
    arrows = [
        (line.get_xdata()[0], line.get_marker()) for line in ax.lines if line.get_gid() == "cut off"
    ]
    assert arrows == [(8, "^")]
    assert figure.legends[0].get_texts()[-1].get_text() == "interval cut off"


def test_each_axis_has_its_scale(swept):
    small = cell("s", nodes=2048)
    large = cell("l", nodes=4_194_304)
    wide = cell("w", feature_dim=512, work_class="different")
    other, deep = cell("o", fanouts="10/10"), cell("d", fanouts="5")
    one = cell("t", threads=1)
    centre = cell("c")
    run = swept(
        [small, large, wide, other, deep, one, centre],
        graph_size=("dataset", [("rmat@11", ["s"]), ("rmat@22", ["l"]), ("gone", ["nowhere"])]),
        feature_width=("dataset", [("rmat@11x8x512", ["w"]), ("rmat@11x8x32", ["c"])]),
        fanouts=("fanouts", [([10, 10], ["o"]), ([5, 5], ["c"])]),
        layers=("fanouts", [([5], ["d"]), ([5, 5], ["c"])]),
        threads=("threads", [(1, ["t"]), (0, ["c"])]),
    )
    figure = scalability.figure(run)
    size, width, fanouts, layers, threads = figure.axes
    assert ticks(size) == {2048: "2048", 4194304: "4.19M"} and size.get_xscale() == "log"
    assert ticks(width) == {32: "32", 512: "512"}
    assert ticks(fanouts) == {0: "10/10", 1: "5/5"} and fanouts.get_xscale() == "linear"
    assert ticks(layers) == {1: "1", 2: "2"}
    assert ticks(threads) == {1: "1", 2: "2"}
    assert figure.get_suptitle().endswith("\naround fanouts 5/5, 2 threads")
    marks = [line for line in width.lines if line.get_marker() == "o"]
    hollow = {line.get_xdata()[0]: line.get_markerfacecolor() for line in marks}
    assert hollow == {32: BLUE, 512: "white"}
    assert "different work" in figure.legends[0].get_texts()[1].get_text()


def of_ranks(name, ranks, batch, rate):
    recipe = json.dumps({"schedule": {"name": "data-parallel", "ranks": ranks}})
    return cell(name, "fastsample", recipe=recipe, batch_size=batch, seeds=100, judged_s=100 / rate,
                ci_low_s=100 / rate, ci_high_s=100 / rate)  # fmt: skip


def test_ranks_are_drawn_with_linear_scaling_and_weak_scaling_with_batches(run, tmp_path):
    """One process of the reference has the same batch at each place of weak scaling."""
    cells = [cell("b1", seeds=64), cell("b2", batch_size=128, seeds=128)]
    cells += [of_ranks("r1", 1, 64, 40.0), of_ranks("r2", 2, 128, 60.0)]
    axis = "fastsample.schedule.ranks"
    points = [
        {"values": {axis: 1, "batch_size": 64}, "cells": ["b1", "r1"]},
        {"values": {axis: 2, "batch_size": 128}, "cells": ["b2", "r2"]},
    ]
    (tmp_path / "run.json").write_text(json.dumps({"sweeps": {"weak_scaling": points}}))
    figure = scalability.figure(run(cells, []))
    (ax,) = figure.axes
    assert ax.get_title() == "weak scaling" and "processes" in ax.get_xlabel()
    assert ticks(ax) == {1: "1\nbatch 64", 2: "2\nbatch 128"}
    assert lines(ax) == {BLUE: ([1, 2], [32.0, 64.0]), ORANGE: ([1, 2], [40.0, 60.0])}
    (even,) = [line for line in ax.lines if line.get_gid() == "linear"]  # of ranks alone
    assert (even.get_color(), list(even.get_ydata())) == (ORANGE, [40.0, 80.0])
    assert "linear scaling" in figure.legends[0].get_texts()[-1].get_text()


def test_cells_that_cannot_run_here_are_left_out(swept, tmp_path):
    absent = cell("x", "pyg", status="missing_dep", judged_s=None, seeds=None)
    (ax,) = scalability.figure(
        swept([cell("a"), absent], batch_size=("batch_size", [(64, ["a", "x"])]))
    ).axes
    assert len(lines(ax)) == 1 and not ax.texts
    assert scalability.figure(swept([absent], batch_size=("batch_size", [(64, ["x"])]))) is None


def test_runs_without_sweeps_have_no_figure(run, tmp_path):
    assert scalability.figure(run([cell("a")], [])) is None
    assert draw(tmp_path, ["scalability"]) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(8, "8"), (512, "512"), (4000, "4000"), (16000, "16k"), (262144, "262k"),
     (2**21, "2.1M"), (0.5, "0.5"), (1e9, "1G")],
)  # fmt: skip
def test_numbers_in_short(value, text):
    assert scalability.short(value) == text
