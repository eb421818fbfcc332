"""The figure of overlap, from rows that the tests write."""

import errno

import pytest
from matplotlib.figure import Figure
from plot_rows import plot_cell

from gnnbench.analysis.plots import draw, match_degree
from gnnbench.core.errors import UsageError

DEGREES = {
    "match_degree": 0.7, "match_degree_least": 0.6, "match_degree_lower": 0.65,
    "match_degree_median": 0.71, "match_degree_upper": 0.75, "match_degree_most": 0.8,
    "match_degree_drawn": 0.69, "match_degree_run": 0.77,
}  # fmt: skip


def cell(number, store, **values):
    more = {"batch_size": 80, "batches": 10, **values}
    return plot_cell(number, "match-degree", "memory_io", {"features": {"name": store}}, **more)


def metric(number, stage, name, value, where=""):
    return {"id": str(number), "stage": stage, "name": name, "where": where, "value": value}


METRIC_ROWS = [
    metric(1, "features", "feature_bytes", 4000, "host"),
    metric(2, "features", "feature_bytes", 1000, "host"),
    metric(2, "features", "feature_bytes", 3000, "reused"),
    *(metric(2, "order", name, value) for name, value in DEGREES.items()),
]


def test_bars_are_shares_of_the_rows_that_are_needed(run):
    (ax,) = match_degree.figure(run([cell(1, "host"), cell(2, "match")], METRIC_ROWS)).axes
    assert [p.get_width() for p in ax.patches] == pytest.approx([0.7, 0.25, 1.0])
    texts = [t.get_text() for t in ax.texts]
    assert texts == ["70.0% match", "25.0%", "100.0%", "rows loaded"]
    marks = {(line.get_marker(), *line.get_xdata()) for line in ax.lines if line.get_gid() == "dot"}
    assert marks == {("o", 0.69), ("D", 0.77)}
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels == ["all pairs of batches", "baseline features=match", "baseline features=host"]


def test_incorrect_cell_has_no_bar_and_no_marks(run):
    cells = [cell(1, "host"), cell(2, "match"), cell(3, "window", status="incorrect")]
    rows = [*METRIC_ROWS, metric(3, "features", "feature_bytes", 9, "reused"),
            *(metric(3, "order", name, 0.1) for name in DEGREES)]  # fmt: skip
    (ax,) = match_degree.figure(run(cells, rows)).axes
    assert [p.get_width() for p in ax.patches] == pytest.approx([0.7, 0.25, 1.0])
    assert "no result: incorrect" in [t.get_text() for t in ax.texts]


def test_a_panel_per_dataset(run):
    rows = [cell(1, "host"), cell(2, "match", dataset="e")]
    titles = [ax.get_title() for ax in match_degree.figure(run(rows, METRIC_ROWS)).axes]
    assert titles == [f"{name}, fanouts 15/10/5, batch 80" for name in "de"]


def test_runs_without_match_degree_have_no_figure(run, tmp_path):
    without_degree = run([cell(1, "host")], METRIC_ROWS[:1])
    assert match_degree.figure(without_degree) is None
    assert draw(tmp_path, ["match_degree"]) == []


def test_full_disk_is_reported_in_a_sentence(run, tmp_path, monkeypatch):
    run([cell(1, "host"), cell(2, "match")], METRIC_ROWS)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    words = r"cannot write the figures .*no space left.*gnnbench plot"
    with pytest.raises(UsageError, match=words):
        draw(tmp_path, ["match_degree"])
