import json
import shutil

import pytest
from committed import ROOT, RUNS, name

from gnnbench.errors import UsageError
from gnnbench.results.report import DOCUMENT, report


def test_the_document_is_what_the_results_say():
    assert (ROOT / DOCUMENT).read_text() == report(ROOT), "run 'python -m gnnbench.results.report'"


def test_every_committed_run_is_told_of_and_every_link_leads_somewhere():
    text = report(ROOT)
    for folder in RUNS:
        assert f"\n## {name(folder)}\n" in text
    links = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert links and all((ROOT / "docs" / link).resolve().exists() for link in links)


def test_another_result_is_another_document(tmp_path):
    shutil.copytree(RUNS[0], tmp_path / "results" / "a" / "machine")
    shutil.copytree(RUNS[0], tmp_path / "results" / "a" / "run-20260101T000000Z-abc")
    text = report(tmp_path)
    assert text.count("\n## ") == 1 and "## a/machine" in text
    cells = tmp_path / "results" / "a" / "machine" / "cells.csv"
    lines = cells.read_text().splitlines()
    cells.write_text("\n".join(lines[:-1]) + "\n")  # a row less
    assert report(tmp_path) != text


def test_settings_of_all_rows_of_a_system_are_told(tmp_path):
    folder = tmp_path / "results" / "a" / "machine"
    shutil.copytree(RUNS[0], folder)
    record = json.loads((folder / "run.json").read_text())
    record["notes"] = ["baseline runs with features.ratio=auto", "a note of the moment"]
    (folder / "run.json").write_text(json.dumps(record))
    text = report(tmp_path)
    assert "\n- baseline runs with features.ratio=auto\n" in text and "moment" not in text


def test_without_results_it_says_so(tmp_path):
    with pytest.raises(UsageError, match="no results"):
        report(tmp_path)
