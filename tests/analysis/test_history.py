"""Speed-ups over versions of a peer: their order, changes and page."""

import csv
import io
import json

import pytest
from ratio_runs import RATIOS, run, scaled

from gnnbench.analysis.history import history, page
from gnnbench.analysis.plots import track as drawing
from gnnbench.analysis.track import summary, tables
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader

PYG = {"system": "pyg", "reference": "pyg", "reference_id": "base", "id": ""}


def versions(number, **more):
    return {"versions": f"torch_geometric {number}, torch 2.13.0, python 3.11", **more}


def measured(folder, *others, base="2.8.1", **changes):
    """A run of one cell, and of ``others``: (changes of the row, ratios) in other environments."""
    cells = [({"id": "base", "system": "pyg", **versions(base), **changes}, ())]
    for nth, (row, ratios) in enumerate(others):
        cells.append(({**PYG, "id": f"e{nth}", "env": f"env{nth}", **row}, ratios))
    return reader.read(run(folder, cells))


def test_versions_are_ordered_as_numbers_and_changes_named(tmp_path):
    made = history([measured(
        tmp_path / "r", (versions("2.10.0"), scaled(0.8)), (versions("2.6.1"), RATIOS),
        (versions("2.7"), scaled(1.001)),
    )])  # fmt: skip
    (series,) = made.series
    assert [(p.name, p.change) for p in series.points] == [
        ("torch_geometric 2.6.1", "first"), ("torch_geometric 2.7", "none"),
        ("torch_geometric 2.8.1", "none"), ("torch_geometric 2.10.0", "slower"),
    ]  # fmt: skip
    assert [p.since for p in series.points[1:]] == ["torch_geometric 2.6.1"] * 3
    base = series.points[2]
    assert (base.ratio, base.ratio_ci_low, base.ratio_ci_high, base.pairs) == (1.0, 1.0, 1.0, 5)
    assert summary(made) == [
        "pyg: slower since torch_geometric 2.10.0 (0.80x)", "1 change in 1 cell over 4 versions",
    ]  # fmt: skip
    (table,) = tables(made)
    assert table.heads[0] == "version" and "0.80x of torch_geometric 2.6.1" in str(table.lines[-1])


def test_a_version_that_failed_is_not_judged(tmp_path):
    made = history([measured(
        tmp_path / "r", ({**versions("2.6"), "status": "crash"}, ()),
        (versions("2.7"), scaled(0.5)),
    )])  # fmt: skip
    (series,) = made.series
    assert [(p.change, p.remark) for p in series.points] == [
        ("not judged", "crash"), ("first", ""), ("faster", ""),
    ]  # fmt: skip


def test_fewer_than_three_pairs_say_nothing(tmp_path):
    (series,) = history([measured(tmp_path / "r", (versions("2.7"), scaled(0.5)[:2]))]).series
    assert {p.change for p in series.points} == {"not judged"}


def test_environments_of_equal_versions_have_their_names(tmp_path):
    (series,) = history(
        [measured(tmp_path / "r", (versions("2.8.1"), RATIOS), (versions("2.8.1"), RATIOS))]
    ).series
    assert [p.name for p in series.points] == [
        "same versions (this environment)", "same versions (env0)", "same versions (env1)",
    ]  # fmt: skip


def test_a_version_that_is_no_number_comes_first(tmp_path):
    (series,) = history(
        [measured(tmp_path / "r", (versions("nightly"), RATIOS), (versions("2.9"), RATIOS))]
    ).series
    assert [p.name.split()[1] for p in series.points] == ["nightly", "2.8.1", "2.9"]


@pytest.mark.parametrize("changes", [{"env": ""}, {"batch_size": 16}])
def test_only_other_environments_of_the_same_cell_count(tmp_path, changes):
    with pytest.raises(UsageError, match="no run has a system in two environments"):
        history([measured(tmp_path / "r", ({**versions("2.7"), **changes}, RATIOS))])


def test_page_has_changes_curves_and_tables(tmp_path):
    made = history([measured(tmp_path / "r", (versions("2.7"), scaled(1.5)))])
    text = page(made, "figures/history.svg")
    (change,) = [line for line in text.splitlines() if "slower since" in line]
    assert change.startswith("- pyg") and "2.8.1 (0.67x)" in change
    assert "](figures/history.svg)" in text and "| version |" in text
    assert "by version" in drawing.figure(made)._suptitle.get_text()


def test_the_command_prints_every_format_draws_and_writes_a_page(tmp_path, said):
    measured(tmp_path / "r", (versions("2.7"), scaled(1.5)))
    code, out, err = said("history", "r", "--page", "site/pyg.md", "--figure", "site/figures/pyg")
    assert (code, err) == (0, "") and "1 change in 1 cell over 2 versions" in out
    assert out.splitlines()[-3:] == ["site/figures/pyg.png", "site/figures/pyg.svg", "site/pyg.md"]
    assert "](figures/pyg.svg)" in (tmp_path / "site" / "pyg.md").read_text()
    code, out, _ = said("history", "r", "--json")
    assert json.loads(out)["over"] == "version"
    assert json.loads(out)["figures"] == ["results/history.png", "results/history.svg"]
    rows = list(csv.DictReader(io.StringIO(said("history", "r", "--format", "csv")[1])))
    assert [row["change"] for row in rows] == ["first", "slower"]
    assert "| torch_geometric 2.7 | 5 |" in said("history", "r", "--format", "markdown")[1]
    code, out, err = said("history", "r", "--page", "/dev/null/a.md")
    assert (code, out) == (2, "") and "another file with --page" in err
