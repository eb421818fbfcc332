"""Ratios over runs: matched cells, changes, and their tables."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest
from ratio_runs import RATIOS, run, scaled

from gnnbench import schema
from gnnbench.analysis.plots import track as drawing
from gnnbench.analysis.track import summary, tables, track
from gnnbench.core import files
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader, writer

NEW_DGL = {"versions": "dgl 2.5, torch 2.1"}
OLD_DGL = {"versions": "dgl 1.1, torch 2.1"}


def days(folder, *cells, **records):
    """Runs of one cell, a day apart; ``cells`` has (changes of the row, ratios) of each."""
    folder.mkdir(exist_ok=True)
    made = []
    for day, cell in enumerate(cells, 1):
        record = {key: values[day - 1] for key, values in records.items()}
        started = f"202601{day:02}T120000Z"
        made.append(run(folder / f"run-{day}", [cell], started=started, **record))
    return [reader.read(path) for path in made]


def changes(tracked):
    (series,) = tracked.series
    return [point.change for point in series.points]


def test_intervals_that_do_not_overlap_are_changes(tmp_path):
    factors = (1.0, 1.001, 0.8, 0.801, 1.3)
    tracked = track(days(tmp_path, *(({}, scaled(f)) for f in factors)))
    assert changes(tracked) == ["first", "none", "slower", "none", "faster"]
    (series,) = tracked.series
    assert [point.started for point in series.points][:2] == [
        "2026-01-01 12:00",
        "2026-01-02 12:00",
    ]
    assert [point.since[-5:] for point in series.points] == ["", "run-1", "run-1", "run-3", "run-3"]
    assert series.points[2].ratio == pytest.approx(0.8) and series.points[2].pairs == 5
    assert series.points[2].ratio_ci_high < series.points[1].ratio_ci_low
    assert summary(tracked)[-1] == "2 changes in 1 cell over 5 runs"
    assert summary(tracked)[0] == "s: slower since 2026-01-03 12:00 (0.80x)"


def test_runs_are_ordered_by_their_start(tmp_path):
    runs = days(tmp_path, *(({}, scaled(f)) for f in (1.0, 0.8, 0.5)))
    assert changes(track(runs[::-1])) == ["first", "slower", "slower"]


def test_small_changes_add_up(tmp_path):
    """Each interval overlaps that of the run before."""
    tracked = track(days(tmp_path, *(({}, scaled(1 - 0.008 * n)) for n in range(4))))
    (series,) = tracked.series
    for before, here in zip(series.points, series.points[1:], strict=False):
        assert here.ratio_ci_high > before.ratio_ci_low
    assert "slower" in changes(tracked)


@pytest.mark.parametrize(
    "row,ratios,remark",
    [
        ({"status": "crash"}, (), "crash"),
        ({"ratio": None}, (), "no ratio"),
        ({"doubtful": "a neighbour"}, scaled(0.5), "unreliable"),
        ({}, scaled(0.5)[:2], "fewer than 3 pairs"),
    ],
)
def test_an_unusable_ratio_is_no_change_and_later_ones_are_not_compared_with_it(
    tmp_path, row, ratios, remark
):
    tracked = track(days(tmp_path, ({}, RATIOS), (row, ratios), ({}, RATIOS)))
    assert changes(tracked) == ["first", "not judged", "none"]
    point = tracked.series[0].points[1]
    assert remark in point.remark and point.since == ""


@pytest.mark.parametrize(
    "row,remark",
    [
        ({"batches": 3}, "other work: batches is 4 before, 3 here"),
        (
            {"recipe": '{"features": {"name": "host", "implementation": 2}}'},
            "implementation 1 before",
        ),
        ({"reference": "x"}, "its reference is r before, x here"),
    ],
)
def test_ratios_that_cannot_be_compared_start_anew(tmp_path, row, remark):
    plain = {"recipe": '{"features": {"name": "host"}}'}
    cells = [(plain, RATIOS), (plain | row, scaled(0.5)), (plain | row, scaled(0.5))]
    tracked = track(days(tmp_path, *cells))
    assert changes(tracked) == ["first", "first", "none"]
    assert remark in tracked.series[0].points[1].remark


def test_another_gpu_model_starts_anew(tmp_path):
    machines = [{"gpus": [{"name": name, "memory_bytes": 1.0}]} for name in ("H100", "H200")]
    cells = [({"device": "cuda"}, RATIOS), ({"device": "cuda"}, scaled(0.5))]
    runs = [reader.read(r.path) for r in days(tmp_path, *cells)]
    for one, machine in zip(runs, machines, strict=True):
        record = json.loads((one.path / "run.json").read_text()) | {"machine": machine}
        files.write_json(one.path / "run.json", record)
    tracked = track(reader.read(one.path) for one in runs)
    assert changes(tracked) == ["first", "first"]
    assert tracked.series[0].points[1].remark == "its GPU is H100 before, H200 here"


def test_versions_may_change_and_are_shown_where_they_differ(tmp_path):
    cells = [(OLD_DGL, RATIOS), (NEW_DGL, scaled(0.7))]
    revisions = [{"git_revision": "a" * 40}, {"git_revision": "b" * 40, "git_dirty": True}]
    tracked = track(days(tmp_path, *cells, revision=revisions, machine=["m1", "m2"]))
    assert changes(tracked) == ["first", "slower"]
    assert tracked.series[0].points[1].versions == {"dgl": "2.5", "torch": "2.1"}
    (table,) = tables(tracked)
    first, second = table.lines
    assert (first["versions"], second["versions"]) == ("dgl 1.1", "dgl 2.5")
    assert (first["revision"], second["revision"]) == ("a" * 8, "b" * 8 + "-dirty")
    assert second["remark"] == "0.70x of 2026-01-01 12:00; another machine"


def test_the_reference_has_its_own_versions_where_they_differ(tmp_path):
    runs = days(tmp_path, (OLD_DGL, RATIOS), (OLD_DGL, RATIOS))
    for one in runs:
        one.cells[0].versions = "dgl 1.0, torch 2.1, python 3.11"
        writer.write_csv(one.path / "cells.csv", schema.CELLS, one.cells)
    point = track(runs).series[0].points[0]
    assert point.versions == {"dgl": "1.1", "torch": "2.1", "the reference's dgl": "1.0"}


def test_cells_of_one_run_only_are_left_out(tmp_path):
    other = {"id": "other", "system": "other"}
    first = run(tmp_path / "run-1", [({}, RATIOS), (other, RATIOS)])
    second = run(tmp_path / "run-2", [({}, RATIOS)])
    tracked = track(map(reader.read, (first, second)))
    assert [series.cell for series in tracked.series] == ["s"]


@pytest.mark.parametrize("count,words", [(1, "only one run"), (2, "no two of the runs")])
def test_what_cannot_be_tracked_is_refused(tmp_path, count, words):
    cells = [({"id": f"c{n}", "system": f"s{n}"}, RATIOS) for n in range(count)]
    with pytest.raises(UsageError, match=words):
        track(days(tmp_path, *cells))


def test_the_command_prints_every_format_and_draws(tmp_path, said):
    days(tmp_path / "history", (OLD_DGL, RATIOS), (NEW_DGL, scaled(0.8)))
    code, out, err = said("track", "history")
    assert (code, err) == (0, "")
    assert "slower since 2026-01-02 12:00 (0.80x)" in out
    assert out.splitlines()[-2:] == ["results/track.png", "results/track.svg"]
    ElementTree.parse(tmp_path / "results" / "track.svg")
    code, out, _ = said("track", "history", "--json", "--figure", "a/trend.svg")
    found = json.loads(out)
    assert code == 0 and found["figures"] == ["a/trend.png", "a/trend.svg"]
    assert all((tmp_path / path).stat().st_size for path in found["figures"])
    (series,) = found["series"]
    assert [p["change"] for p in series["points"]] == ["first", "slower"]
    assert series["points"][1]["versions"] == {"dgl": "2.5", "torch": "2.1"}
    rows = list(csv.DictReader(io.StringIO(said("track", "history", "--format", "csv")[1])))
    assert [row["change"] for row in rows] == ["first", "slower"]
    assert (
        float(rows[1]["ratio"]) == pytest.approx(0.8)
        and rows[0]["versions"] == "dgl 1.1, torch 2.1"
    )
    assert "| 2026-01-02 12:00 |" in said("track", "history", "--format", "markdown")[1]
    for name, words in (
        ("", "names no file"),
        ("/dev/null/a", "cannot write"),
        ("taken.png", "cannot write"),
    ):
        (tmp_path / "taken.png").mkdir(exist_ok=True)
        code, out, err = said("track", "history", "--figure", name)
        assert (code, out) == (2, "") and words in err
    code, out, err = said("track", "history/run-1")
    assert (code, out) == (2, "") and "only one run" in err


def test_the_figure_marks_changes_and_what_is_not_comparable(tmp_path):
    cells = [({}, RATIOS), ({}, scaled(0.8)), ({"doubtful": "x"}, RATIOS),
             ({"batches": 3}, scaled(1.2))]  # fmt: skip
    figure = drawing.figure(track(days(tmp_path, *cells)))
    (ax,) = figure.axes
    points = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    assert points.keys() == {"first", "slower", "not judged"}
    assert points["slower"].get_marker() == "v" and points["slower"].get_xdata()[0] == 1
    assert points["not judged"].get_alpha() < 1
    assert [x.get_xdata()[0] for x in ax.lines if x.get_linestyle() == ":"] == [2.5]
    joined = [list(x.get_xdata()) for x in ax.lines if x.get_linestyle() == "-" and not x.get_gid()]
    assert [0, 1] in joined and [0, 1, 3] not in joined


def test_a_figure_of_many_cells_has_those_with_changes_and_counts_the_others(tmp_path):
    def cells(factor):
        named = [{"id": f"c{n}", "system": f"s{n:02}"} for n in range(drawing.MOST + 3)]
        return [(cell, scaled(factor if cell == named[-1] else 1.0)) for cell in named]

    runs = [run(tmp_path / f"run-{n}", cells(f), started=f"2026010{n}T000000Z")
            for n, f in ((1, 1.0), (2, 0.5))]  # fmt: skip
    tracked = track(map(reader.read, runs))
    figure = drawing.figure(tracked)
    assert len(figure.axes) == drawing.MOST
    assert figure.axes[0].get_title() == f"s{drawing.MOST + 2}"
    (legend,) = figure.legends
    assert "3 more cells: see the table" in [text.get_text() for text in legend.get_texts()]
    assert figure.get_figheight() * 150 <= 1600
