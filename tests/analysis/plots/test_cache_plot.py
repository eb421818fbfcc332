import json

import pytest
from plot_rows import plot_cell

from gnnbench.analysis.plots import cache, draw


def cell(number, policy, ratio, **values):
    features = {"name": "host"}
    if policy:
        features = {"name": "cache", "policy": policy, "ratio": ratio}
    recipe = {"sampler": {"name": "gnnlab"}, "features": features}
    more = {"system": "tsota", "batch_size": 8000, "batches": 4, "pick": "floyd", **values}
    return plot_cell(number, "cache-ratio", "memory_io", recipe, **more)


def metrics(number, hits, **missed):
    rows = [{"id": str(number), "stage": "features", "name": "hit_ratio", "value": hits}]
    for where, count in missed.items():
        rows.append(
            {"id": str(number), "stage": "features", "name": "feature_bytes", "where": where,
             "value": count}
        )  # fmt: skip
    return rows


def curve(number, policy, *hits):
    return [
        {"id": str(number), "policy": policy, "ratio": n / 2, "hit_ratio": h,
         "missed_bytes": (1 - h) * 8e6}
        for n, h in enumerate(hits)
    ]  # fmt: skip


def shown(ax):
    lines = {
        line.get_label(): list(map(float, line.get_ydata()))
        for line in ax.lines if line.get_marker() == "None"
    }  # fmt: skip
    marks = [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]), line.get_color())
        for line in ax.lines if line.get_marker() != "None"
    ]  # fmt: skip
    return lines, marks


def test_lines_are_traces_and_marks_are_measured(run):
    cells = [
        cell(0, "", 0), cell(1, "degree", 0.5), cell(2, "presc#1", 0.5), cell(3, "presc#1", 0.1),
        cell(4, "degree", 0.1, status="incorrect"), cell(5, "degree", 0.2, status="crash"),
    ]  # fmt: skip
    values = [
        *metrics(1, 0.6, cache=99.0, host=12e6), *metrics(2, 0.8, cache=9.0, zero_copy=8e6),
        *metrics(3, 0.3, host=4e6, peer=4e6), *metrics(4, 0.9, host=1.0),
    ]  # fmt: skip
    curves = [
        *curve(1, "degree", 0, 0.61, 1), *curve(1, "sieve", 0, 0.5, 0.9),
        *curve(2, "presc#1", 0, 0.79, 1), *curve(3, "presc#1", 0, 0.79, 1),
        *curve(2, "sieve", 0, 0.5, 0.9),
    ]  # fmt: skip
    figure = cache.figure(run(cells, values, curves=curves))
    hits, missed, times = figure.axes
    lines, marks = shown(hits)
    assert lines == {"degree": [0, 61, 100], "presc#1": [0, 79, 100]}  # sieve was not run
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts[:2] == ["degree", "presc#1"] and "sieve" not in texts
    assert [m[:2] for m in marks] == [(50, 60), (50, 80), (10, 30)]
    assert marks[1][2] == marks[2][2] != marks[0][2]
    lines, marks = shown(missed)
    assert lines["degree"] == pytest.approx([8, 3.12, 0])
    assert [m[1] for m in marks] == [3, 2, 2]  # MB per batch that were not cached
    lines, marks = shown(times)
    assert marks == [] and times.get_ylabel() == "memory IO per epoch [s]"


def features_of(before, policy, ratio):
    table = {"name": "cache", "policy": policy, "ratio": ratio, "table": "host"}
    return {"features": {"name": before, "table": table}, "order": {"name": "greedy", "window": 8}}


def test_a_cache_behind_a_store_has_lines_of_its_own(run):
    """A cache behind another store sees other rows; reused rows are not missed."""
    cells = [
        cell(0, "", 0, memory_io_time_s=4.0), cell(1, "presc#1", 0.5, memory_io_time_s=2.0),
        cell(2, "presc#1", 0.1, memory_io_time_s=3.0),
        cell(3, "", 0, recipe=json.dumps(features_of("match", "presc#1", 0.5)),
             memory_io_time_s=1.0),
    ]  # fmt: skip
    values = [
        *metrics(1, 0.7, cache=9.0, host=8e6),
        *metrics(3, 0.2, cache=9.0, reused=5e9, host=4e6),
    ]
    curves = [*curve(1, "presc#1", 0, 0.7, 1), *curve(3, "presc#1", 0, 0.2, 0.3)]
    hits, missed, times = cache.figure(run(cells, values, curves=curves)).axes
    lines, marks = shown(hits)
    behind = "presc#1 behind match, greedy order"
    assert lines == {"presc#1": [0, 70, 100], behind: [0, 20, 30]}
    assert [m[:2] for m in marks] == [(50, 70), (50, 20)]
    assert [m[1] for m in shown(missed)[1]] == [2, 1]
    seen = {line.get_label(): list(map(float, line.get_ydata())) for line in times.lines}
    assert seen == {"presc#1": [3, 2], behind: [1], "tsota features=host, no cache": [4, 4]}


def test_derived_ratio_is_taken_from_the_metrics(run):
    values = [
        *metrics(1, 0.5), {"id": "1", "stage": "features", "name": "cache_ratio", "value": 0.3},
    ]  # fmt: skip
    cells = [cell(1, "degree", "auto"), cell(2, "degree", "auto")]  # the other was not measured
    hits = cache.figure(run(cells, values)).axes[0]
    assert [m[:2] for m in shown(hits)[1]] == [(30, 50)]


def test_each_graph_and_sampling_setting_has_three_panels(run):
    cells = [cell(1, "degree", 0.1), cell(2, "degree", 0.1, dataset="e"),
             cell(3, "degree", 0.1, pick="reservoir")]  # fmt: skip
    titles = [ax.get_title() for ax in cache.figure(run(cells)).axes]
    assert (
        titles
        == ["d, fanouts 15/10/5, batch 8000"] * 3
        + ["e, fanouts 15/10/5, batch 8000"] * 3
        + ["d, fanouts 15/10/5, batch 8000"] * 3
    )


def test_settings_that_do_not_fit_are_counted(run):
    cells = [cell(n, "degree", 0.1, dataset=f"d{n}") for n in range(7)]
    figure = cache.figure(run(cells))
    assert len(figure.axes) == 3 * 5
    assert figure.get_suptitle().endswith("2 more settings in cells.csv")


def test_markers_at_the_edge_are_drawn_whole(run):
    """Also if all times are almost equal and far from zero."""
    cells = [
        cell(1, "degree", 0.1, memory_io_time_s=0.5), cell(2, "degree", 0.5, memory_io_time_s=0.51),
    ]  # fmt: skip
    figure = cache.figure(run(cells, [*metrics(1, 0.3), *metrics(2, 1.0)]))
    figure.canvas.draw()
    for ax in (figure.axes[0], figure.axes[2]):
        for line in ax.lines:
            radius = line.get_markersize() / 72 * figure.dpi / 2
            pixels = ax.transData.transform(line.get_xydata())
            assert (pixels[:, 1] + radius <= ax.bbox.y1).all()
            assert (pixels[:, 0] - radius >= ax.bbox.x0).all()
            assert (pixels[:, 0] + radius <= ax.bbox.x1).all()


def test_unreliable_time_is_marked(run):
    cells = [cell(1, "degree", 0.2, memory_io_time_s=0.5, doubtful="busy")]
    figure = cache.figure(run(cells, metrics(1, 0.5)))
    assert [(t.get_text(), t.xy) for t in figure.axes[2].texts] == [("(?)", (20.0, 0.5))]
    assert figure.legends[0].get_texts()[-1].get_text().startswith("(?)")


def test_without_a_cache_there_is_no_figure(run, tmp_path):
    assert cache.figure(run([cell(0, "", 0)])) is None
    assert draw(tmp_path, ["cache"]) == []
