"""Runs by name, and the list of them."""

import json
import subprocess
import sys

import pytest

from gnnbench.analysis import run_names
from gnnbench.core.errors import UsageError
from gnnbench.harness.folder import writing
from gnnbench.schema import CELLS, VERSION, writer


@pytest.fixture
def out(tmp_path):
    """Three runs: breakdown of day 1 and 3, sampling of day 2, with one failed cell."""
    for experiment, day in (("breakdown", 1), ("sampling", 2), ("breakdown", 3)):
        folder = tmp_path / experiment / f"run-2026010{day}T120000Z-abc"
        folder.mkdir(parents=True)
        cells = [
            {"id": "a", "system": "a", "status": "ok"},
            {"id": "b", "system": "b", "status": "crash"},
        ]
        cells = [{**cell, "until": "sample", "schema_version": VERSION} for cell in cells]
        writer.write_csv(folder / "cells.csv", CELLS, cells[: 1 + (experiment == "sampling")])
        gpu = {"name": "NVIDIA H200", "memory_bytes": 150_754_820_096}
        machine = {"cores_usable": 4, "gpus": [gpu] * 2 * (day == 3)}
        (folder / "run.json").write_text(json.dumps({"profile": "smoke", "machine": machine}))
    return tmp_path


@pytest.mark.parametrize(
    "name,run",
    [
        ("latest", "breakdown/run-20260103T120000Z-abc"),
        ("", "breakdown/run-20260103T120000Z-abc"),
        ("latest~1", "sampling/run-20260102T120000Z-abc"),
        ("latest~2", "breakdown/run-20260101T120000Z-abc"),
        ("breakdown", "breakdown/run-20260103T120000Z-abc"),
        ("breakdown~1", "breakdown/run-20260101T120000Z-abc"),
        ("run-20260102T120000Z-abc", "sampling/run-20260102T120000Z-abc"),
    ],
)
def test_a_run_by_name(out, name, run):
    assert run_names.find(name, out) == out / run


def test_a_run_by_its_folder_a_file_in_it_or_the_folder_of_its_experiment(out, tmp_path):
    folder = out / "breakdown" / "run-20260101T120000Z-abc"
    assert run_names.find(str(folder), tmp_path / "none") == folder
    assert run_names.find(str(folder / "cells.csv"), tmp_path / "none") == folder
    newest = out / "breakdown" / "run-20260103T120000Z-abc"
    assert run_names.find(str(out / "breakdown"), tmp_path / "none") == newest
    assert run_names.find(str(out), tmp_path / "none") == newest


@pytest.mark.parametrize(
    "name,words",
    [
        ("breakdown~2", "has 2 runs of 'breakdown', so no 'breakdown~2'"),
        ("latest~9", "has 3 runs, so no 'latest~9'"),
        ("memory", "'memory' is no run"),
        ("latest~", "'latest~' is no run"),
    ],
)
def test_unknown_run_is_reported_with_the_known_ones(out, name, words):
    with pytest.raises(UsageError, match="gnnbench runs") as error:
        run_names.find(name, out)
    assert words in str(error.value)


def test_without_a_run_the_message_makes_one(tmp_path):
    with pytest.raises(UsageError, match="gnnbench run breakdown"):
        run_names.find("latest", tmp_path)


def test_runs_are_listed_by_the_names_that_find_them(out):
    rows = run_names.listed(out)
    assert [r["run"] for r in rows] == ["breakdown", "sampling", "breakdown~1"]
    assert all(str(run_names.find(r["run"], out)) == r["where"] for r in rows)
    assert [(r["ok"], r["failed"]) for r in rows] == [(1, 0), (1, 1), (1, 0)]
    assert [r["machine"] for r in rows] == ["2 x H200", "4 CPU cores", "4 CPU cores"]
    assert {r["state"] for r in rows} == {"finished"}
    assert rows[0]["when"] == "2026-01-03 12:00" and rows[0]["profile"] == "smoke"


def test_a_damaged_run_is_listed_as_one(out):
    (out / "sampling" / "run-20260102T120000Z-abc" / "run.json").write_text("{")
    rows = run_names.listed(out)[1]
    assert (rows["machine"], rows["state"]) == ("damaged", "damaged")


LOCKS = """
import sys
from pathlib import Path
from gnnbench.harness.folder import writing
with writing(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_run_is_running_while_another_process_writes_it(out):
    folder = out / "sampling" / "run-20260102T120000Z-abc"
    (folder / "run.json").write_text(json.dumps({"finished": False}))
    cells = [
        {"id": status, "status": status, "until": "sample", "schema_version": VERSION}
        for status in ("ok", "unstable", "crash")
    ]
    writer.write_csv(folder / "cells.csv", CELLS, cells)

    def state():
        row = next(r for r in run_names.listed(out) if r["run"] == "sampling")
        return row["state"], row["ok"], row["failed"]

    assert state() == ("interrupted", 1, 2)
    command = [sys.executable, "-c", LOCKS, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        assert state() == ("running", 1, 1)  # more pairs may make the unstable cell stable
        process.communicate()
    assert state() == ("interrupted", 1, 2)


def test_folder_is_running_while_it_is_written(tmp_path):
    assert not run_names.is_running(tmp_path)
    with writing(tmp_path):
        assert run_names.is_running(tmp_path)
        assert run_names.is_running(tmp_path)  # looking changes nothing
    assert not run_names.is_running(tmp_path)
    assert not run_names.is_running(tmp_path / "absent")


def test_run_without_results_is_not_the_newest(out):
    empty = out / "breakdown" / "run-20260104T120000Z-abc"
    empty.mkdir()
    writer.write_csv(empty / "cells.csv", CELLS, [])
    assert run_names.find("latest", out) == run_names.find("breakdown", out)
    assert run_names.find("breakdown", out).name == "run-20260103T120000Z-abc"
    assert run_names.find(empty.name, out) == empty
    assert [r["run"] for r in run_names.listed(out)][:3] == [empty.name, "breakdown", "sampling"]


def test_all_runs_of_an_experiment_or_a_folder(out, tmp_path):
    first, third = (tmp_path / "breakdown" / f"run-2026010{day}T120000Z-abc" for day in (1, 3))
    second = tmp_path / "sampling" / "run-20260102T120000Z-abc"
    assert run_names.find_all(["breakdown"], out) == [first, third]
    assert run_names.find_all([str(out)], out) == [first, third, second]
    assert run_names.find_all([str(out / "breakdown"), "latest", "sampling"], out) == [
        first, third, second,
    ]  # fmt: skip
    assert run_names.find_all(["latest~2", str(third / "cells.csv")], out) == [first, third]
    with pytest.raises(UsageError, match="is no run"):
        run_names.find_all(["breakdown", "nosuch"], out)
