"""Every committed run is read, agrees with itself and can be drawn."""

import csv
import json

import pytest
from committed import RUNS, name

from gnnbench.analysis import plots
from gnnbench.analysis.compare import compare
from gnnbench.analysis.labels import labels
from gnnbench.core.cell import flat
from gnnbench.schema import CELLS, METRICS, RATIOS, SAMPLES, VERSION, column_names, reader, writer

runs = pytest.mark.parametrize("folder", RUNS, ids=name, scope="module")


def size(folder):
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def largest(folders, most=2):
    """Of each experiment's runs the largest, of one definition one: others' figures are smaller."""
    found = {}
    for folder in sorted(folders, key=size):
        record = reader.read_record(folder)
        name = record["experiment"]["name"]
        found.setdefault(name, {})[record.get("definition_hash") or folder] = folder
    return sorted(f for known in found.values() for f in sorted(known.values(), key=size)[-most:])


@pytest.fixture(scope="module")
def run(folder):
    return reader.read(folder)


def ids(folder):
    with (folder / "cells.csv").open(newline="") as table:
        return [row["id"] for row in csv.DictReader(table)]


def test_there_are_committed_runs():
    assert len(RUNS) >= 10


@runs
def test_every_row_reads_with_all_columns(folder, run):
    assert [r["id"] for r in run.cells] == ids(folder)
    for rows, columns in ((run.cells, CELLS), (run.metrics, METRICS), (run.ratios, RATIOS)):
        assert all(set(r) == set(column_names(columns)) for r in rows)
    assert all(set(s) == set(column_names(SAMPLES)) for s in run.samples)
    assert {r["schema_version"] for r in run.cells} == {VERSION}
    assert all(r["until"] in ("sample", "memory_io", "compute") for r in run.cells)
    assert all((r["model"] == "") == (r["until"] != "compute") for r in run.cells)


@runs
def test_bytes_are_booked_where_they_were_read(run):
    for cell in run.cells:
        where = {m["where"] for m in run.metrics
                 if (m["id"], m["name"]) == (cell["id"], "feature_bytes")}  # fmt: skip
        if cell["until"] != "compute" or not cell["n"] or cell["system"] != "baseline":
            continue
        store = flat(json.loads(cell["recipe"]))["features"]
        table = flat(json.loads(cell["recipe"])).get("features.table", store)
        on_gpu = {"host": "host_copy", "uva": "zero_copy", "gpu": "device"}
        right = {on_gpu[table] if cell["device"] == "cuda" else "host"}
        assert where == (right | {"cache"} if store == "cache" else right)


@runs
def test_phases_and_idle_time_make_up_every_epoch(run):
    for sample in run.samples:
        if sample["wall_s"]:
            phases = [sample[f"{p}_time_s"] or 0.0 for p in ("sample", "memory_io", "compute")]
            together = sum(phases) + sample["idle_s"]  # two or three at a time where they overlap
            overlap = sample["overlap_s"] or 0.0
            assert 0.98 * (together - 2 * overlap) <= sample["wall_s"]
            assert sample["wall_s"] <= 1.02 * (together - overlap)


@runs
def test_what_is_judged_agrees_with_its_samples(run):
    for row in run.cells:
        if row["n"]:
            assert row["judged_s"] == row[row["judged"]]
            if row["ci_low_s"] is not None:  # of a single life there is no interval
                assert row["ci_low_s"] <= row["judged_s"] <= row["ci_high_s"]


@runs
def test_rows_have_labels_of_their_own(run):
    rows = run.cells
    found = labels(rows)
    assert len({found.of(r) for r in rows}) == len(rows)


@runs
def test_a_run_is_no_regression_of_itself(run):
    found = compare(run, run)
    assert not found.regressions and not found.only_a and not found.only_b
    for row, cell in zip(run.cells, found.cells, strict=True):
        if row["ratio"] is None:
            assert cell.verdict == ("not judged" if row["status"] == "ok" else "incomparable"), cell
        else:
            assert cell.verdict in ("same", "unclear", "not judged", "incomparable"), cell


@runs
def test_a_run_compares_with_its_tables_written_again(run, tmp_path):
    cells = [{**r, "id": f"new-{r['id']}"} for r in run.cells]
    writer.write_csv(tmp_path / "cells.csv", CELLS, cells)
    again = reader.read(tmp_path)
    assert again.cells == cells
    found = compare(run, again)
    assert not found.only_a and not found.only_b and not found.regressions


def drawn(folder, tmp_path, figures=()):
    """Names of the files that are drawn of a copy of the run."""
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return [path.name for path in plots.draw(tmp_path, figures)]


@pytest.mark.parametrize("folder", largest(RUNS), ids=name, scope="module")
def test_figures_are_laid_out(folder, run, tmp_path, monkeypatch):
    """Every text and mark has its place; a figure of each kind is written below."""

    def laid_out(figure, stem):
        figure.draw_without_rendering()
        return [stem]

    monkeypatch.setattr(plots, "save", laid_out)
    found = drawn(folder, tmp_path)
    assert found and set(found) <= set(run.record["experiment"]["figures"])


def test_figures_of_every_kind_are_written(tmp_path):
    """Of the smallest run that has one."""
    asked = {f: {*reader.read_record(f)["experiment"]["figures"]} for f in sorted(RUNS, key=size)}
    left = set.union(*asked.values())
    for nth, folder in enumerate(asked):
        if wanted := left & asked[folder]:
            (tmp_path / str(nth)).mkdir()
            found = drawn(folder, tmp_path / str(nth), sorted(wanted))
            left -= (names := {file.partition(".")[0] for file in found})
            assert set(found) == {f"{n}.{suffix}" for n in names for suffix in ("png", "svg")}
    assert not left
