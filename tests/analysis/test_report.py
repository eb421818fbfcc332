import json
import re
import shutil

import pytest
from committed import ROOT, RUNS, copy_headlines

from gnnbench.analysis import headlines
from gnnbench.analysis.report import (
    DOCUMENT,
    MOST_LINES,
    PAGES,
    README,
    VERSION_PAGE,
    documents,
    write,
)
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader

RUN = min(RUNS, key=lambda run: (run / "cells.csv").stat().st_size)


@pytest.fixture(scope="module")
def made():
    return documents(ROOT)


def results(tmp_path, run=RUN):
    """A root whose only result is a copy of a run, with the runs of the headlines."""
    shutil.copytree(run, tmp_path / "results" / "a" / "machine")
    copy_headlines(tmp_path)
    return tmp_path / "results" / "a" / "machine"


def only_page(root):
    (page,) = [text for path, text in documents(root).items() if path.name.startswith("a.")]
    return page


def test_documents_are_generated_from_the_results(made):
    there = {path.relative_to(ROOT) for path in (ROOT / PAGES).glob("*.md")}
    there |= {DOCUMENT, README, VERSION_PAGE}
    assert there == made.keys(), "run 'python -m gnnbench.analysis.report'"
    for path, text in made.items():
        assert (ROOT / path).read_text() == text, "run 'python -m gnnbench.analysis.report'"


def test_documents_are_short(made):
    assert len(made[DOCUMENT].splitlines()) <= 100
    assert all(len(text.encode()) <= 60_000 for text in made.values())


def test_every_committed_run_is_reported_and_every_link_leads_somewhere(made):
    pages = {path.name.partition(".")[0]: "" for path in made}
    for path, text in made.items():
        pages[path.name.partition(".")[0]] += text
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / path.parent / link).resolve().exists(), link
    for folder in RUNS:
        assert f"\n## {folder.name}\n" in pages[folder.parent.name]


def test_another_result_is_another_document(tmp_path):
    folder = results(tmp_path)
    shutil.copytree(RUN, tmp_path / "results" / "a" / "run-20260101T000000Z-abc")
    text = only_page(tmp_path)
    assert text.count("\n## ") == 1 and "\n## machine\n" in text
    cells = folder / "cells.csv"
    cells.write_text("\n".join(cells.read_text().splitlines()[:-1]) + "\n")  # a row less
    assert only_page(tmp_path) != text


def test_a_long_table_is_linked(tmp_path):
    long = max(RUNS, key=lambda run: (run / "cells.csv").read_bytes().count(b"\n"))
    folder = results(tmp_path, long)
    rows = len(reader.read(folder).cells)
    text = only_page(tmp_path)
    assert rows > MOST_LINES and f"[{rows} rows](" in text and "| --- |" not in text


def test_settings_of_all_rows_of_a_system_are_reported(tmp_path):
    folder = results(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    record["notes"] = ["baseline runs with features.ratio=auto", "a note of the moment"]
    (folder / "run.json").write_text(json.dumps(record))
    text = only_page(tmp_path)
    assert "\n- baseline runs with features.ratio=auto\n" in text and "moment" not in text


def test_pages_without_results_are_removed(tmp_path):
    results(tmp_path)
    (tmp_path / PAGES).mkdir(parents=True)
    (tmp_path / PAGES / "old.md").write_text("old")
    write(tmp_path)
    assert not (tmp_path / PAGES / "old.md").exists() and (tmp_path / DOCUMENT).exists()


def test_without_results_it_says_so(tmp_path):
    with pytest.raises(UsageError, match="no results"):
        documents(tmp_path)


RUN_OF_RATIOS = reader.read(ROOT / "results" / "reference" / "xeon-2-threads" / "transitivity")
FUSED, SAMPLE = "baseline sampler=fused-map", "baseline sampler=fastsample"


def headline(**more):
    return headlines.Headline(measured="m", against="a", run="r", **more)


def interval(chosen):
    return headlines.interval(chosen, headlines.ratio_row(chosen, RUN_OF_RATIOS))


def test_headline_is_the_ratio_of_a_row_or_of_a_pair():
    (row,) = [r for r in RUN_OF_RATIOS.cells if '"fused-map"' in r["recipe"]]
    ends = row["ratio"], row["ratio_ci_low"], row["ratio_ci_high"]
    assert interval(headline(of=FUSED)) == ends
    inverse = interval(headline(of=FUSED, inverse=True))
    assert inverse == (1 / ends[0], 1 / ends[2], 1 / ends[1])
    (couple,) = RUN_OF_RATIOS.ratios
    assert interval(headline(of=SAMPLE, over=FUSED)) == (
        couple["ratio"],
        couple["ratio_ci_low"],
        couple["ratio_ci_high"],
    )


@pytest.mark.parametrize(
    "of", [{"of": "baseline"}, {"of": "dgl"}, {"of": FUSED, "over": SAMPLE},
           {"of": FUSED, "rows": {"batch_size": 1}}],
)  # fmt: skip
def test_a_headline_needs_exactly_one_ratio(of):
    with pytest.raises(UsageError, match=r"has [02] ratios of the headline 'm', expected one"):
        interval(headline(**of))
