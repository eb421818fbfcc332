"""``show``, ``runs``, ``compare`` and ``plot`` find runs by name and print their tables."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "results" / "reference" / "xeon-2-threads"


COMPARE = ("compare", "latest~1", "latest")
TRACK = ("track", "transitivity")
VERDICTS = ("verdicts", "--paper", "fastgl/table3,fastgl/table4")
# One committed run of each name: other machines and larger graphs give the same columns.
RUNS = {
    path.parent.name: path.parent
    for path in sorted(REFERENCE.parent.glob("*/*/cells.csv"))
    if not path.parent.name.startswith("advise-second-larg")
}


@pytest.fixture(autouse=True)
def two_runs(tmp_path):
    """Two runs of one experiment in the folder where commands are run."""
    for day in (1, 2):
        folder = tmp_path / "results" / "transitivity" / f"run-2026010{day}T120000Z-abc"
        shutil.copytree(REFERENCE / "transitivity", folder)
        (folder / "figures").mkdir()
        (folder / "figures" / "sampling.png").touch()


def test_show_prints_the_table_the_fastest_system_and_the_files(said):
    code, out, err = said("show")
    assert (code, err) == (0, "")
    for text in ("sampler=fastsample", "3 of 3 cells measured", "of 3 compared by"):
        assert text in out
    lines = out.splitlines()
    folder = "results/transitivity/run-20260102T120000Z-abc"
    assert f"Again: gnnbench show {folder} (--format csv, markdown, latex or json)" in lines
    assert f"{folder}/cells.csv" in lines and f"{folder}/figures/sampling.png" in lines
    assert said("show", "transitivity")[1] == out
    assert "run-20260101T" in said("show", "latest~1")[1]


def test_piped_tables_have_at_most_80_columns(said, tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    assert said("data", "prepare", "coauthor_physics~twin@0.0125")[0] == 0  # has a size on disk
    for words in (
        ("show",),
        ("list", "systems"),
        ("data", "list"),
        ("runs",),
        COMPARE,
        TRACK,
        VERDICTS,
    ):
        code, out, _ = said(*words)
        assert code == 0
        # A table that is too wide is printed as one indented list for each row.
        rows = [line for line in out.splitlines() if "  " in line[1:70] and line[0] != " "]
        assert rows and max(len(line.rstrip()) for line in rows) <= 80, words


@pytest.mark.parametrize("name", RUNS)
def test_tables_of_a_committed_run_fit_80_columns(said, name):
    code, out, _ = said("show", str(RUNS[name]))
    tables, again, _ = re.split("\n(Again|All columns): ", out)  # the rest is not wrapped
    assert code == 0 and again
    assert max(len(line.rstrip()) for line in tables.splitlines()) <= 80
    assert "astest here: " in tables or any(text in tables for text in ("o verdict", "o winner"))


def test_systems_are_ranked_in_one_table(said):
    folder = str(REFERENCE.parent / "h200" / "breakdown-systems-papers")
    _, narrow, _ = said("show", folder)
    _, wide, _ = said("show", folder, "--wide")
    _, verbose, _ = said("show", folder, "--verbose")
    heads = [line for line in narrow.splitlines() if line.startswith("system ")]
    assert heads and all("speed-up" in line and "memory" not in line for line in heads)
    assert "memory IO" in wide and "--wide" not in wide
    assert "more notes: --verbose prints them" in narrow
    assert "more notes" not in verbose and len(verbose) > len(narrow)


def test_show_prints_markdown_csv_and_latex(said):
    code, out, err = said("show", "--format", "markdown")
    assert (code, err) == (0, "") and "| system |" in out and "alternating runs" in out
    code, out, _ = said("show", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and float(rows[1]["ratio"]) > 1 and rows[0]["verdict"] == "reference"
    code, out, _ = said("show", "--format", "latex")
    assert code == 0 and out.count(r"\begin{tabular}") == 1 and "sampler=fastsample" in out


def test_show_prints_a_run_as_json(said):
    code, out, err = said("show", "--format", "json")
    run = json.loads(out)
    assert (code, err) == (0, "") and run["run"].endswith("run-20260102T120000Z-abc")
    first = run["cells"][0]
    assert len(run["cells"]) == 3 and first["verdict"] == "reference"
    assert isinstance(first["fanouts"], list) and isinstance(first["recipe"], dict)
    assert {"figures", "metrics", "ratios"} <= run.keys()


def test_listed_run_names_are_accepted_by_compare(said):
    code, out, _ = said("runs", "--json")
    names = [r["run"] for r in json.loads(out)]
    assert (code, names) == (0, ["transitivity", "transitivity~1"])
    assert said("runs")[1].count("products~twin@0.05") == 2
    code, out, _ = said("compare", "latest~1", "latest")
    assert code == 0 and "3 cells in both" in out
    assert said("compare", *reversed(names))[1] == out


def test_plot_draws_for_a_screen_or_for_a_paper(said, tmp_path):
    code, out, _ = said("plot", "latest")
    folder = "results/transitivity/run-20260102T120000Z-abc/figures"
    assert code == 0 and out.splitlines() == [f"{folder}/sampling.png", f"{folder}/sampling.svg"]
    code, out, _ = said("plot", "latest", "--pdf")
    assert code == 0 and out.splitlines() == [f"{folder}/sampling.pdf"]
    assert (tmp_path / folder / "sampling.pdf").read_bytes().startswith(b"%PDF")


def test_runs_refuses_a_folder_without_runs(said):
    code, _, err = said("runs", "--out", "nowhere")
    assert code == 2 and "no results in 'nowhere'" in err


def test_unknown_runs_and_empty_lists_are_refused_in_one_sentence(said):
    for words, message in (
        (("show", "a\nb"), "'a\\nb' is no run"),
        (("show", "latest~99"), "'results' has 2 runs, so no 'latest~99'"),
        (("show", "transitivity~99"), "has 2 runs of 'transitivity', so no"),
        (("plot", "--figure", ","), "--figure names nothing"),
        (("verdicts", "--paper", ""), "--paper names nothing"),
    ):
        code, out, err = said(*words)
        assert (code, out, err.count("\n")) == (2, "", 1) and message in err
