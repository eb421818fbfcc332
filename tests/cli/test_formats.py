"""``--format`` of all commands, and its deprecated spellings."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "results" / "reference" / "xeon-2-threads"
ALL = ("table", "json", "csv", "markdown", "latex")
FORMATS = {
    ("show",): ALL,
    ("compare", "latest", "latest"): ALL,
    ("track", "transitivity"): ALL,
    ("runs",): ALL,
    ("list", "models"): ("csv", "latex"),
    ("list", "fastgl/table4"): ("csv", "markdown"),
    ("list", "baseline"): ("json", "latex"),
    ("list", "breakdown"): ("json", "markdown"),
    ("verdicts", "--paper", "fastgl/table4"): ("json", "markdown"),
    ("doctor",): ("markdown",),
    ("data", "list"): ("json", "csv", "markdown"),
    ("data", "info", "products~twin"): ("table", "json"),
}


@pytest.fixture(autouse=True)
def two_runs(tmp_path, monkeypatch):
    for name in ("run-1", "run-2"):
        shutil.copytree(REFERENCE / "transitivity", tmp_path / "results" / "transitivity" / name)
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))


@pytest.mark.parametrize(
    "words,form", [(w, f) for w, forms in FORMATS.items() for f in forms], ids=str
)
def test_output_of_a_format_is_valid(said, words, form):
    code, out, err = said(*words, "--format", form)
    assert (code, err) == (0, "") and out
    if form == "json":
        json.loads(out)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(out)))
        assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}
    elif form == "markdown":
        assert "| ---" in out and "\x1b" not in out
    elif form == "latex":
        assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") >= 1


@pytest.mark.parametrize("words", [("show",), ("data", "info", "products~twin")], ids=str)
def test_json_option_is_short_for_format_json(said, words):
    short = said(*words, "--json")
    assert short == said(*words, "--format=json") and (short[0], short[2]) == (0, "")


@pytest.mark.parametrize("command,form", [("show", "csv"), ("runs", "markdown"), ("show", "latex")])
def test_deprecated_option_works_and_warns_once(said, command, form):
    new, old = said(command, "--format", form), said(command, f"--{form}")
    assert old[:2] == new[:2]
    assert old[2] == f"gnnbench: --{form} is deprecated; give --format {form}\n"


@pytest.mark.parametrize(
    "words",
    [("--csv", "--markdown"), ("--json", "--format", "csv"), ("--format=csv", "--format=json")],
    ids=" ".join,
)
def test_two_formats_are_refused(said, words):
    code, out, err = said("show", *words)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "more than one format" in err


def test_unsupported_format_is_refused(said):
    code, out, err = said("doctor", "--format", "csv")
    assert (code, out) == (2, "") and "'csv' is not one of 'table', 'json'" in err
    code, out, err = said("list", "--format", "csv")
    assert (code, out) == (2, "") and "CSV holds one table" in err and "systems" in err


def test_arguments_after_two_dashes_are_not_options(said):
    code, _, err = said("show", "--", "--csv")
    assert code == 2 and "'--csv' is no run" in err
