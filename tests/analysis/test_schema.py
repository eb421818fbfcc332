import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gnnbench import schema
from gnnbench.analysis import run_names
from gnnbench.core import files
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader, writer
from gnnbench.schema.events import read_journal

ROOT = Path(__file__).parents[2]
UNITS = {"s": "_s", "B": "bytes"}


@pytest.mark.parametrize("columns", [columns for _, columns in schema.TABLES.values()])
def test_names_are_unique_snake_case_and_carry_their_unit(columns):
    names = schema.column_names(columns)
    assert len(names) == len(set(names))
    for column in columns:
        assert column.name == column.name.lower().replace(" ", "_")
        assert column.description
        assert column.dtype in ("str", "int", "float", "bool")
        if column.unit in UNITS:
            assert UNITS[column.unit] in column.name


def test_cells_table_has_identity_times_work_and_ratio_only():
    names = schema.column_names(schema.CELLS)
    assert names[0] == "id" and names[-1] == "schema_version" and len(names) <= 74
    assert set(names) >= {
        "system", "dataset", "until", "model", "device", "pick", "frontier", "recipe", "threads",
        "sample_time_s", "memory_io_time_s", "compute_time_s", "overlap_s", "idle_s",
        "epoch_wall_s", "judged_s", "sampled_edges", "unique_nodes", "n", "ci_low_s", "ci_high_s",
        "work_class", "verified", "ratio", "verdict", "status", "reason",
    }  # fmt: skip
    assert not any("bytes" in name or "speedup" in name for name in names)


def test_older_table_is_read_without_later_columns(tmp_path):
    names = [c.name for c in schema.CELLS if c.name not in ("env", "versions", "pairs")]
    path = tmp_path / "cells.csv"
    path.write_text(",".join(names) + "\n" + "," * (len(names) - 1) + "\n")
    (row,) = reader.read_csv(path, schema.CellRow)
    assert row.keys() == {c.name for c in schema.CELLS}
    assert (row["env"], row["versions"], row["pairs"]) == ("", "", None)


def test_document_is_generated_from_the_code():
    document = ROOT / "results" / "SCHEMA.md"
    printed = subprocess.run(
        [sys.executable, "-m", "gnnbench.analysis.schema_document"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert document.read_text() == printed.stdout, (
        "run 'python -m gnnbench.analysis.schema_document > results/SCHEMA.md'"
    )


def test_rows_come_back_typed(tmp_path):
    row = {"id": "a", "n": 3, "epoch_wall_s": 0.1 + 0.2, "ci_low_s": float("nan")}
    row["reason"] = 'with "quotes", commas\n'
    writer.write_csv(tmp_path / "cells.csv", schema.CELLS, [row])
    (back,) = reader.read_csv(tmp_path / "cells.csv", schema.CellRow)
    assert set(back) == set(schema.column_names(schema.CELLS))
    assert back["epoch_wall_s"] == row["epoch_wall_s"]
    assert (back["id"], back["n"], back["reason"]) == ("a", 3, row["reason"])
    assert back["ci_low_s"] is None
    assert back["system"] == ""


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("10%\r20%\r", "10%\n20%\n"), ("a\r\nb", "a\nb"), ("b\udcff.npz", "b\\udcff.npz"),
        ('"=1,2"\t;', '"=1,2"\t;'),
    ],
)  # fmt: skip
def test_any_text_can_be_read_back(tmp_path, text, read):
    path = tmp_path / "cells.csv"
    writer.write_csv(path, schema.CELLS, [{"id": "a", "reason": text, "remark": text}])
    (row,) = reader.read_csv(path, schema.CellRow)
    assert (row["id"], row["reason"], row["remark"]) == ("a", read, read)


def test_a_column_outside_the_schema_cannot_be_written(tmp_path):
    with pytest.raises(KeyError, match="speed_up"):
        writer.write_csv(tmp_path / "cells.csv", schema.CELLS, [{"speed_up": 1}])
    assert not list(tmp_path.iterdir())


def test_foreign_and_damaged_tables_are_refused(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("id,colour\na,b\n")
    with pytest.raises(UsageError, match="colour"):
        reader.read(tmp_path)
    path.write_text("id,n\na,many\n")
    with pytest.raises(UsageError, match="damaged"):
        reader.read(tmp_path)
    row = {"id": "a", "schema_version": schema.VERSION + 1}
    writer.write_csv(path, schema.CELLS, [row])
    with pytest.raises(UsageError, match="another version of gnnbench"):
        reader.read(tmp_path)
    with pytest.raises(UsageError, match=r"no cells\.csv"):
        reader.read(tmp_path / "nowhere")


def test_latest_is_the_newest_run(tmp_path):
    with pytest.raises(UsageError, match="no results"):
        run_names.find("latest", tmp_path)
    for experiment, stamp in (("b", "20260101T000000Z"), ("a", "20260102T000000Z")):
        folder = tmp_path / experiment / f"run-{stamp}-abc"
        folder.mkdir(parents=True)
        (folder / "cells.csv").write_text("id\na\n")
    assert run_names.find("latest", tmp_path).parent.name == "a"


def test_journal_survives_a_torn_line(tmp_path):
    path = tmp_path / "events.jsonl"
    journal = files.Journal(path)
    journal.append({"a": 1, "b": float("inf")})
    journal.append({"a": 2})
    journal.close()
    whole = path.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 2, len(whole) - 1, len(whole)):
        path.write_bytes(whole[:cut])
        before = read_journal(path, dict)
        assert before == [{"a": 1, "b": None}, {"a": 2}][: whole[:cut].count(b"\n")]
        again = files.Journal(path)
        again.append({"a": 3})
        again.close()
        assert read_journal(path, dict) == [*before, {"a": 3}]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "run.json"
    files.write_json(path, {"x": float("nan"), "p": Path("y")})
    assert json.loads(path.read_text()) == {"x": None, "p": "y"}
    with pytest.raises(RuntimeError), files.atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert json.loads(path.read_text()) == {"x": None, "p": "y"}
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write to .*--out"):
        files.ensure_folder(tmp_path / "file" / "results")


def test_csv_is_plain(tmp_path):
    writer.write_csv(tmp_path / "s.csv", schema.SAMPLES, [{"warmup": True, "ok": False}])
    with (tmp_path / "s.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["warmup"], row["ok"]) == ("true", "false")
