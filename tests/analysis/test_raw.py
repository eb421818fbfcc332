"""Raw rows of a run read alike, plain or packed."""

import json
import lzma
import tarfile

import pytest

from gnnbench.analysis import metrics
from gnnbench.core.errors import UsageError
from gnnbench.harness.journal import RunJournal
from gnnbench.schema import CELLS, METRICS, SAMPLES, STAGES, VERSION, pack, raw, reader
from gnnbench.schema.writer import write_csv

CELL = {"id": "a", "until": "sample", "status": "ok", "schema_version": VERSION}
TRIALS = [("p", 0, False), ("p", 1, True), ("q", 0, False)]
EVENTS = [{"event": "life", "pair": p, "life": n, "void": void} for p, n, void in TRIALS]


def sample(pair, trial, wall_s=1):
    return {"id": "a", "pair": pair, "life": trial, "warmup": False, "wall_s": wall_s, "counts": []}


def write_run(folder, events=EVENTS, table=True):
    """A run of four samples; the third is of a void trial, the last one's trial never finished."""
    samples = [sample("p", 0), sample("q", 0, 2.5), sample("p", 1), sample("q", 1)]
    write_csv(folder / "cells.csv", CELLS, [CELL])
    (folder / "run.json").write_text("{}")
    (folder / "samples.jsonl").write_text("".join(json.dumps(s) + "\n" for s in samples))
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    if table:
        known = [{c.name: s.get(c.name) for c in SAMPLES} for s in samples]
        void = [False, False, True, True]
        rows = [{**row, "void": v} for row, v in zip(known, void, strict=True)]
        write_csv(folder / "samples.csv", SAMPLES, rows)
    return folder


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_packed_run_reads_as_the_plain_one(tmp_path):
    plain = reader.read(write_run(tmp_path))
    pack.pack(tmp_path)
    assert sorted(files(tmp_path)) == ["cells.csv", "raw.tar.xz", "run.json"]
    packed = reader.read(tmp_path)
    assert packed == plain and [s["void"] for s in packed.samples] == [False, False, True, True]
    assert [s["wall_s"] for s in packed.samples] == [1.0, 2.5, 1.0, 1.0]
    assert [r["pair"] for r in raw.records(tmp_path / "samples.jsonl")] == ["p", "q", "p", "q"]


def test_the_archive_is_an_ordinary_one_and_has_equal_bytes(tmp_path):
    write_run(tmp_path)
    pack.pack(tmp_path)
    first = (tmp_path / raw.ARCHIVE).read_bytes()
    with tarfile.open(tmp_path / raw.ARCHIVE) as tar:
        assert tar.getnames() == ["samples.jsonl", "events.jsonl"]
    pack.pack(tmp_path)
    assert (tmp_path / raw.ARCHIVE).read_bytes() == first


def test_a_table_that_the_journals_do_not_give_is_kept(tmp_path):
    write_run(tmp_path, events=[])  # all void by the journals
    before = reader.read(tmp_path)
    pack.pack(tmp_path)
    with tarfile.open(tmp_path / raw.ARCHIVE) as tar:
        assert "samples.csv" in tar.getnames()
    assert reader.read(tmp_path) == before


def test_unpacked_journals_are_the_ones_that_were_packed(tmp_path):
    write_run(tmp_path)
    before = files(tmp_path)
    pack.pack(tmp_path)
    pack.unpack(tmp_path)
    assert files(tmp_path) == {k: v for k, v in before.items() if k != "samples.csv"}


def test_journal_continues_a_packed_run(tmp_path):
    write_run(tmp_path)
    pack.pack(tmp_path)
    journal = RunJournal(tmp_path)
    journal.record("note", text="s")
    journal.close()
    assert len(journal.samples) == 4 and not (tmp_path / raw.ARCHIVE).exists()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["life", "life", "life", "note"]


METRIC = {"id": "a", "stage": "epoch", "name": "outer_s", "where": "", "value": 2.0, "n": 3}


def test_descriptions_of_metrics_are_left_out(tmp_path):
    write_csv(tmp_path / "cells.csv", CELLS, [CELL])
    described = {**METRIC, "unit": metrics.OUTER.unit, "description": metrics.OUTER.description}
    write_csv(tmp_path / "metrics.csv", METRICS, [described])
    before = reader.read(tmp_path)
    pack.pack(tmp_path)
    assert "description" not in (tmp_path / "metrics.csv").read_text().splitlines()[0]
    (row,) = reader.read(tmp_path).metrics
    assert row == {**before.metrics[0], "description": ""} != before.metrics[0]


def test_large_tables_are_packed(tmp_path):
    write_csv(tmp_path / "cells.csv", CELLS, [CELL])
    many = [{**METRIC, "where": str(n)} for n in range(pack.LARGEST_METRICS // 20)]
    write_csv(tmp_path / "metrics.csv", METRICS, many)
    write_csv(tmp_path / "stages.csv", STAGES, [{"id": "a", "cell": "c", "stage": "draw"}])
    before = reader.read(tmp_path)
    pack.pack(tmp_path)
    assert sorted(files(tmp_path)) == ["cells.csv", "raw.tar.xz"]
    assert reader.read(tmp_path) == before and before.stages and len(before.metrics) == len(many)


def test_samples_before_a_retry_are_void(tmp_path):
    write_run(tmp_path, [*EVENTS, {"event": "retry", "cells": [], "pairs": ["p"]}], table=False)
    assert [s["void"] for s in reader.read(tmp_path).samples] == [True, False, True, True]


def test_a_plain_file_has_precedence(tmp_path):
    write_run(tmp_path)
    pack.pack(tmp_path)
    (tmp_path / "samples.jsonl").write_text("")
    assert reader.read(tmp_path).samples == []


def test_a_run_without_raw_rows_has_no_samples(tmp_path):
    write_csv(tmp_path / "cells.csv", CELLS, [CELL])
    assert reader.read(tmp_path).samples == []
    pack.pack(tmp_path)
    assert not (tmp_path / raw.ARCHIVE).exists()


@pytest.mark.parametrize(
    "damaged",
    [b"", b"no archive", lzma.compress(b"no tar"), None],
    ids=["empty", "other", "no-tar", "torn"],
)
def test_a_damaged_archive_is_refused_by_name(damaged, tmp_path):
    write_run(tmp_path)
    pack.pack(tmp_path)
    archive = tmp_path / raw.ARCHIVE
    archive.write_bytes(archive.read_bytes()[:-60] if damaged is None else damaged)
    with pytest.raises(UsageError, match=r"raw\.tar\.xz' is damaged"):
        reader.read(tmp_path)
