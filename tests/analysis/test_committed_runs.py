"""Every committed run can be read and agrees with itself."""

import csv
import json

import pytest
from committed import RUNS, largest_run_by_figure, name

from gnnbench.analysis import plots
from gnnbench.analysis.compare import compare
from gnnbench.analysis.labels import labels
from gnnbench.core.cell import flat
from gnnbench.schema import CELLS, METRICS, RATIOS, SAMPLES, VERSION, column_names, reader, writer


def test_there_are_committed_runs():
    assert len(RUNS) >= 10


def check_columns(folder, run):
    with (folder / "cells.csv").open(newline="") as table:
        assert [r["id"] for r in run.cells] == [row["id"] for row in csv.DictReader(table)]
    tables = ((run.cells, CELLS), (run.metrics, METRICS), (run.ratios, RATIOS))
    for rows, columns in (*tables, (run.samples, SAMPLES)):
        assert all(list(row) == column_names(columns) for row in rows)
    assert {r["schema_version"] for r in run.cells} == {VERSION}
    assert all(r["until"] in ("sample", "memory_io", "compute") for r in run.cells)
    assert all((r["model"] == "") == (r["until"] != "compute") for r in run.cells)


def check_sources_of_feature_bytes(run):
    for cell in run.cells:
        if cell["until"] != "compute" or not cell["n"] or cell["system"] != "baseline":
            continue
        sources = {
            m["where"] for m in run.metrics if (m["id"], m["name"]) == (cell["id"], "feature_bytes")
        }
        recipe = flat(json.loads(cell["recipe"]))
        store = recipe["features"]
        table = recipe.get("features.table", store)
        on_gpu = {"host": "host_copy", "uva": "zero_copy", "gpu": "device"}
        expected = {on_gpu[table] if cell["device"] == "cuda" else "host"}
        assert sources == (expected | {"cache"} if store == "cache" else expected)


def check_phases_add_up_to_the_wall_time(run):
    for sample in run.samples:
        if sample["wall_s"]:
            phases = [sample[f"{p}_time_s"] or 0.0 for p in ("sample", "memory_io", "compute")]
            total = sum(phases) + sample["idle_s"]  # two or three phases can overlap
            overlap = sample["overlap_s"] or 0.0
            assert 0.98 * (total - 2 * overlap) <= sample["wall_s"] <= 1.02 * (total - overlap)


def check_primary_metric(run):
    for row in run.cells:
        if row["n"]:
            assert row["judged_s"] == row[row["judged"]]
            if row["ci_low_s"] is not None:  # one trial has no interval
                assert row["ci_low_s"] <= row["judged_s"] <= row["ci_high_s"]


def check_labels_are_distinct(run):
    named = labels(run.cells)
    assert len({named.of(r) for r in run.cells}) == len(run.cells)


def check_comparison_with_itself(run):
    comparison = compare(run, run)
    assert not comparison.regressions and not comparison.only_a and not comparison.only_b
    for row, cell in zip(run.cells, comparison.cells, strict=True):
        if row["ratio"] is None:
            measured = row["status"] in ("ok", "unstable")
            assert cell.verdict == ("not judged" if measured else "incomparable"), cell
        else:
            assert cell.verdict in ("same", "unclear", "not judged", "incomparable"), cell


def check_comparison_with_a_copy(run, folder):
    """Cells are matched by their settings if the ids differ."""
    cells = [{**r, "id": f"new-{r['id']}"} for r in run.cells]
    writer.write_csv(folder / "cells.csv", CELLS, cells)
    copy = reader.read(folder)
    assert copy.cells == cells
    comparison = compare(run, copy)
    assert not comparison.only_a and not comparison.only_b and not comparison.regressions


@pytest.mark.parametrize("folder", RUNS, ids=name)
def test_committed_run_agrees_with_itself(folder, tmp_path):
    run = reader.read(folder)
    check_columns(folder, run)
    check_sources_of_feature_bytes(run)
    check_phases_add_up_to_the_wall_time(run)
    check_primary_metric(run)
    check_labels_are_distinct(run)
    check_comparison_with_itself(run)
    check_comparison_with_a_copy(run, tmp_path)


def test_committed_runs_have_figures_of_every_kind_but_memory():
    assert largest_run_by_figure().keys() == {*plots.FIGURES} - {"memory"}
