"""A run folder full of hostile text goes through every command that shows it."""

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gnnbench.analysis import report
from gnnbench.cli import main
from gnnbench.reproduction import page
from gnnbench.reproduction.claim import choose
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.schema import CELLS, RATIOS, VERSION
from gnnbench.schema.writer import write_csv

TEXT = (
    "\x1b[31m\x1b]0;title\x07\r\n\x7f\x9b\u202e\x00=1+1|`x`[l](javascript:a)<script>"
    "\\input{/etc/passwd}%&$x^{$_#~*\n\\immediate\\write18{x}"
)
KEPT = {"until", "status", "recipe", "id", "reference_id", "judged", "work_class", "verdict"}


def hostile_cell(ident, **more):
    row = {c.name: f"{c.name}{TEXT}" for c in CELLS if c.dtype == "str" and c.name not in KEPT}
    return {
        **row, "id": ident, "reference_id": "a", "until": "compute", "status": "ok",
        "judged": "epoch_wall_s", "judged_s": 1.0, "epoch_wall_s": 1.0, "ci_low_s": 0.9,
        "ci_high_s": 1.1, "sample_time_s": 0.2, "memory_io_time_s": 0.3, "compute_time_s": 0.5,
        "batches": 10, "n": 5, "fanouts": "5/5", "work_class": "identical", "ratio": 1.2,
        "ratio_ci_low": 1.1, "ratio_ci_high": 1.3, "pairs": 5,
        "verdict": "faster",
        "schema_version": VERSION, **more,
    }  # fmt: skip


@pytest.fixture
def out(tmp_path):
    """Results with two runs."""
    import json

    for stamp in ("20260101T000000Z", "20260102T000000Z"):
        folder = tmp_path / "results" / "breakdown" / f"run-{stamp}-aaaaaaaaaaaa"
        folder.mkdir(parents=True)
        recipe = json.dumps({"sampler": {"name": f"=s{TEXT}", f"k{TEXT}": TEXT}})
        cells = [
            hostile_cell("a", system=f"a{TEXT}"),
            hostile_cell("b", system=f"=b{TEXT}", recipe=recipe, dataset=f"{TEXT}/{'x' * 300}"),
            hostile_cell("c", system=f"c{TEXT}", status="crash"),
        ]
        write_csv(folder / "cells.csv", CELLS, cells)
        write_csv(folder / "ratios.csv", RATIOS, [])
        record = {
            "experiment": {"name": f"breakdown{TEXT}", "title": TEXT, "figures": ["breakdown"]},
            "machine": {"cpu": TEXT, "cores_usable": 2, "memory_bytes": 1, "gpus": []},
            "versions": {"python": TEXT, "torch": TEXT}, "profile": TEXT, "machine_id": TEXT,
            "notes": [f"a runs with {TEXT}"], "command": f"gnnbench `run` {TEXT}",
            "busy": {"seconds": 9.0, "cpu_s": {TEXT: 5.0}, "foreign_cpu_s": 5.0, "foreign_s": 5.0},
            "revision": {"git_revision": TEXT}, "finished": False, "started": stamp,
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(record))
    return tmp_path / "results"


def runs(out):
    return sorted((out / "breakdown").iterdir())


COMMANDS = [
    *((*command, "--format", form)
      for command in (("show",), ("compare",), ("track",), ("runs",),
                      ("verdicts", "--paper", "fastgl"))
      for form in ("table", "json", "csv", "markdown", "latex")),
    ("show", "--quiet"),
]  # fmt: skip


def called(command, out, capsys, monkeypatch):
    """Standard output and error of a command, and its exit code."""
    name, *options = command
    first, second = map(str, runs(out))
    which = {"show": [second], "plot": [second], "compare": [first, second], "verdicts": [first]}
    which["track"] = [first, second]
    folder = ["--out", str(out)] if name in ("runs", "track") else []
    monkeypatch.setattr(sys, "argv", ["gnnbench", name, *which.get(name, []), *folder, *options])
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    return captured.out, captured.err, end.value.code


def raw(text):
    """Characters that control a terminal."""
    return {sign for sign in text if not sign.isprintable() and sign not in "\n\t"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_control_characters_or_fails(command, out, capsys, monkeypatch):
    text, err, code = called(command, out, capsys, monkeypatch)
    assert not raw(text + err)
    assert "internal error" not in err
    assert code in (0, 2, 3, 5), err
    assert text or err


def test_markdown_has_no_tags_and_its_tables_are_whole(out, capsys, monkeypatch):
    text, _, _ = called(("show", "--format=markdown"), out, capsys, monkeypatch)
    assert "<" not in text and "&lt;script&gt;" in text
    assert "](javascript" not in text.replace("\\]", "")
    table = [re.sub(r"\\.", "", line) for line in text.splitlines() if line.startswith("|")]
    assert table and len({line.count("|") for line in table}) == 1


def test_latex_has_no_commands_of_the_text(out, capsys, monkeypatch):
    text, _, _ = called(("show", "--format=latex"), out, capsys, monkeypatch)
    code = [line for line in text.splitlines() if not line.startswith("%")]
    assert not [line for line in code if "\\input" in line or "\\immediate" in line]
    assert all(line.startswith(("\\begin", "\\hline", "\\end")) or "&" in line for line in code)


def test_csv_has_no_formulas(out, capsys, monkeypatch):
    text, _, _ = called(("show", "--format=csv"), out, capsys, monkeypatch)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3
    assert not [value for row in rows for value in row.values() if value[:1] in "=+-@" and value]


def test_figures_of_hostile_text_are_valid_xml(out, capsys, monkeypatch):
    text, err, code = called(("plot",), out, capsys, monkeypatch)
    assert code == 0 and not raw(text + err)
    figures = runs(out)[1] / "figures"
    assert sorted(p.name for p in figures.iterdir()) == ["breakdown.png", "breakdown.svg"]
    ElementTree.parse(figures / "breakdown.svg")


def test_page_of_hostile_text_has_no_tags(out):
    (folder, _) = runs(out)
    claims = choose(["fastgl"])
    shown = page.html(out, f"laptop{TEXT}", judge(claims, open_runs([folder])))
    assert "<script" not in shown and not raw(shown)


def test_document_of_hostile_text_has_no_tags(out):
    (folder, _) = runs(out)
    folder.rename(out / "kept")
    text = "\n".join(report._pages(out).values())
    assert not raw(text)
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)  # code shows tags as they are
    assert "<script" not in text and not raw(text)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "| head -c 1"])
def test_closed_streams_leave_no_traceback(closed, out):
    command = f"{sys.executable} -m gnnbench list experiments {closed}"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("columns", ["abc", "0", "-1", "1", "99999999999999999999"])
def test_odd_widths_of_the_terminal_do_no_harm(columns, out, capsys, monkeypatch):
    with monkeypatch.context() as patch:  # pytest itself reads the width when the test ends
        patch.setenv("COLUMNS", columns)
        text, err, code = called(("show",), out, capsys, patch)
    assert code == 0 and text, err
