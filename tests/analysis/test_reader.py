"""Damaged files of a run are refused in one sentence that names the file and the line or key."""

import json
import random
import re
import shutil

import pytest
from committed import RUNS

from gnnbench.analysis import render
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader

SMALL = min((run for run in RUNS if (run / "run.json").exists()),
            key=lambda run: (run / "cells.csv").stat().st_size)  # fmt: skip


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(SMALL, tmp_path / "run", ignore=shutil.ignore_patterns("figures"))


def refused(run, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        reader.read(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "damaged"),
        ('{"machine": ', "damaged"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "not the record of a run"),
        ('{"machine": []}', "'machine' is '[]'"),
        ('{"machine": {"cores_usable": "x"}}', "'machine.cores_usable' is 'x'"),
        ('{"experiment": {"title": 1}}', "'experiment.title' is '1'"),
        ('{"notes": "x"}', "'notes' is 'x'"),
        ('{"machine": {"gpus": [{}]}}', "'machine.gpus.0.name'"),
    ],
)
def test_a_damaged_record(content, message, run):
    (run / "run.json").write_text(content)
    refused(run, message)


def test_a_folder_in_place_of_a_file(run):
    (run / "run.json").unlink()
    (run / "run.json").mkdir()
    refused(run, "is a directory")


def changed(run, column, value):
    """The first cell's ``column`` set to ``value``."""
    import csv

    path = run / "cells.csv"
    rows = list(csv.reader(path.open(newline="")))
    rows[1][rows[0].index(column)] = value
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("nodes", "many", "line 2: nodes is 'many', expected a whole number"),
        ("nodes", "9" * 6000, "line 2: nodes is"),
        ("nodes", "1" + "0" * 30, "line 2: nodes is"),
        ("judged_s", "nan", "line 2: judged_s is 'nan', expected a number"),
        ("until", "later", "until is 'later', expected sample, memory_io, compute"),
        ("status", "great", "status is 'great'"),
        ("recipe", "[1]", "its recipe is no JSON object"),
        ("recipe", "[" * 100_000, "its recipe is no JSON object"),
        ("fanouts", "a/b", "fanouts is 'a/b', expected numbers as in '15/10/5'"),
        ("fanouts", "9" * 5000, "expected numbers as in"),
        ("remark", "x" * 200_000, "field larger than field limit"),
    ],
)
def test_a_damaged_cell(column, value, message, run):
    changed(run, column, value)
    refused(run, message)


def test_rows_and_heads_of_another_length(run):
    path = run / "cells.csv"
    text = path.read_text()
    first = text.partition("\n")[0]
    path.write_text(text + "a,b\n")
    refused(run, "2 fields, the first line has")
    path.write_text(text.replace(first, first + ",id", 1))
    refused(run, "two columns 'id'")
    path.write_text(text.replace(first, first + ",nosuch", 1))
    refused(run, "(column 'nosuch')")
    path.write_bytes(text.encode() + b"\xff")
    refused(run, "not UTF-8")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert reader.read(run).cells == reader.read(SMALL).cells


def test_damaged_runs_are_shown_or_refused(run):
    rng = random.Random(33)
    names = ["cells.csv", "metrics.csv", "run.json"]
    originals = {name: (run / name).read_bytes() for name in names if (run / name).exists()}
    for _ in range(80):
        name = rng.choice(sorted(originals))
        content = bytearray(originals[name])
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content))
            kind = rng.randrange(3)
            if kind == 0:
                content[at] = rng.randrange(256)
            elif kind == 1:
                del content[at : at + rng.randint(1, 20)]
            else:
                content[at:at] = rng.choice([b",", b'"', b"\n", b"\0", b"-", b"{", b"nan"])
        (run / name).write_bytes(content)
        try:
            content = reader.read(run)
            for show in (render.markdown, render.latex, render.to_csv):
                assert show(content)
        except UsageError as error:
            assert name in str(error) or "another version" in str(error)
        (run / name).write_bytes(originals[name])
    json.loads((run / "run.json").read_text())
