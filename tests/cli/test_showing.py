"""``show``, ``runs``, ``compare`` and ``plot`` find runs by name and say what is there."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "results" / "reference" / "xeon-2-threads"


COMPARE = ("compare", "latest~1", "latest")
VERDICTS = ("verdicts", "--paper", "fastgl/table3,fastgl/table4")
RUNS = sorted(p.parent for p in REFERENCE.parent.glob("*/*/cells.csv"))


@pytest.fixture(autouse=True)
def two_runs(tmp_path):
    """Of one experiment, where commands are run."""
    for day in (1, 2):
        folder = tmp_path / "results" / "transitivity" / f"run-2026010{day}T120000Z-abc"
        shutil.copytree(REFERENCE / "transitivity", folder)
        (folder / "figures").mkdir()
        (folder / "figures" / "sampling.png").touch()


def test_show_prints_the_table_who_is_fastest_and_where_it_lies(said):
    code, out, err = said("show")
    assert (code, err) == (0, "")
    for told in ("sampler=fastsample", "3 of 3 cells measured", "fastest of 3 compared"):
        assert told in out
    lines = out.splitlines()
    folder = "results/transitivity/run-20260102T120000Z-abc"
    assert f"Again: gnnbench show {folder} (--format csv, markdown, latex or json)" in lines
    assert f"{folder}/cells.csv" in lines and f"{folder}/figures/sampling.png" in lines
    assert said("show", "transitivity")[1] == out
    assert "run-20260101T" in said("show", "latest~1")[1]


def test_what_is_piped_has_tables_of_80_columns(said, tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    assert said("data", "prepare", "coauthor_physics~twin@0.0125")[0] == 0  # has a size on disk
    for words in (("show",), ("list",), ("data", "list"), ("runs",), COMPARE, VERDICTS):
        code, out, _ = said(*words)
        assert code == 0
        # of a table; one too wide for that is told row below row, which begin with blanks
        rows = [line for line in out.splitlines() if "  " in line[1:70] and line[0] != " "]
        assert rows and max(len(line.rstrip()) for line in rows) <= 80, words


@pytest.mark.parametrize("folder", RUNS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_every_committed_run_is_shown_in_80_columns(said, folder):
    code, out, _ = said("show", str(folder))
    told, again, _ = out.partition("\nAgain: ")  # a command and paths are whole lines
    assert code == 0 and again
    assert max(len(line.rstrip()) for line in told.splitlines()) <= 80
    assert "fastest of" in told or "no winner" in told


def test_show_for_a_paper(said):
    code, out, err = said("show", "--format", "markdown")
    assert (code, err) == (0, "") and "| system |" in out and "round by round" in out
    code, out, _ = said("show", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and float(found[1]["ratio"]) > 1 and found[0]["verdict"] == "reference"
    code, out, _ = said("show", "--format", "latex")
    assert code == 0 and out.count(r"\begin{tabular}") == 1 and "sampler=fastsample" in out


def test_show_prints_a_run_as_json(said):
    code, out, err = said("show", "--format", "json")
    found = json.loads(out)
    assert (code, err) == (0, "") and found["run"].endswith("run-20260102T120000Z-abc")
    first = found["cells"][0]
    assert len(found["cells"]) == 3 and first["verdict"] == "reference"
    assert isinstance(first["fanouts"], list) and isinstance(first["recipe"], dict)
    assert {"figures", "metrics", "ratios"} <= found.keys()


def test_runs_are_listed_by_names_that_compare_takes(said):
    code, out, _ = said("runs", "--json")
    names = [r["run"] for r in json.loads(out)]
    assert (code, names) == (0, ["transitivity", "transitivity~1"])
    assert said("runs")[1].count("products~twin@0.05") == 2
    code, out, _ = said("compare", "latest~1", "latest")
    assert code == 0 and "3 cells in both" in out
    assert said("compare", *reversed(names))[1] == out


def test_runs_says_where_there_are_none(said):
    code, _, err = said("runs", "--out", "nowhere")
    assert code == 2 and "no results in 'nowhere'" in err


def test_odd_names_and_empty_lists_are_refused_in_one_sentence(said):
    for words, told in (
        (("show", "a\nb"), "'a\\nb' is no run"),
        (("show", "latest~99"), "'results' has 2 runs, so no 'latest~99'"),
        (("show", "transitivity~99"), "has 2 runs of 'transitivity', so no"),
        (("plot", "--figure", ","), "--figure names nothing"),
        (("verdicts", "--paper", ""), "--paper names nothing"),
    ):
        code, out, err = said(*words)
        assert (code, out, err.count("\n")) == (2, "", 1) and told in err
