"""The block of results in ``README.md``."""

import re

import pytest
from committed import ROOT, copy_headlines

from gnnbench.analysis import headlines, readme
from gnnbench.analysis.report import COMMITTED, README, documents, write
from gnnbench.core.errors import UsageError

ROWS = headlines.results(readme.rows(), ROOT / COMMITTED)
TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")


def lines(text):
    return text.partition(readme.START)[2].partition(readme.END)[0].splitlines()


def test_readme_shows_five_reliable_ratios_of_five_pairs_or_more_and_a_figure():
    block = lines((ROOT / README).read_text())
    table = [line.strip("| ").split(" | ") for line in block if line.startswith("| ")]
    rows = [dict(zip(table[0], row, strict=True)) for row in table[2:]]
    assert len(rows) == 5 and all(int(row["pairs"]) >= 5 for row in rows)
    assert all(re.fullmatch(r"[\d.]+x \[[\d.]+, [\d.]+\]", r["speed-up [95 %]"]) for r in rows)
    for result in ROWS:
        readme.check(result)
    assert sum(line.startswith("![") for line in block) == 1


@pytest.mark.parametrize(
    "changes,words",
    [({"pairs": 4}, "fewer than 5 pairs"), ({"pairs": None}, "fewer than 5 pairs"),
     ({"doubtful": "a neighbour"}, "is unreliable")],
)  # fmt: skip
def test_other_ratios_are_refused(changes, words):
    result = ROWS[0]
    row = type(result.row)(**{**result.row, **changes})
    with pytest.raises(UsageError, match=words):
        readme.check(result._replace(row=row))


def test_notes_name_the_rows_that_are_cut_or_have_other_random_numbers():
    cut, law = readme.notes(ROWS)
    numbers = [n for n, r in enumerate(ROWS, 1) if r.row["max_batches"] in (20, 25)]
    assert re.findall(r"row (\d) the first", cut) == list(map(str, numbers))
    assert law.startswith("In rows 1 and 5 ")
    whole = [result for result in ROWS if result.headline.against == "`baseline`"]
    assert readme.notes(whole) == []
    assert readme.notes(ROWS[:1])[1].startswith("In row 1 (from the top) both systems")


@pytest.mark.parametrize(
    "text",
    ["", readme.START, readme.END + readme.START, readme.START + readme.END * 2,
     readme.START * 2 + readme.END],
)  # fmt: skip
def test_marks_are_needed_once_and_in_order(text):
    with pytest.raises(UsageError, match="needs one line"):
        readme.with_block(text, ["new"])


def test_only_the_block_changes():
    text = f"before\n{readme.START}\nold\n{readme.END}\nafter\n"
    new = f"before\n{readme.START}\n\nnew\n\n{readme.END}\nafter\n"
    assert readme.with_block(text, ["new"]) == readme.with_block(new, ["new"]) == new


def test_other_results_are_another_readme_with_its_figure_drawn_again(tmp_path):
    copy_headlines(tmp_path)
    (figure,) = readme.figures()
    drawn = tmp_path / COMMITTED / figure.path
    committed = drawn.read_text()
    drawn.unlink()
    first = ROWS[0]
    table = tmp_path / COMMITTED / first.headline.run / "cells.csv"
    ratio = str(first.row["ratio"])
    assert ratio in table.read_text()
    table.write_text(table.read_text().replace(ratio, "6.66"))
    assert "| 6.66x [" in documents(tmp_path)[README]
    assert "| 6.66x [" not in (tmp_path / README).read_text()
    write(tmp_path)
    assert "| 6.66x [" in (tmp_path / README).read_text()
    assert sorted(TEXT.findall(drawn.read_text())) == sorted(TEXT.findall(committed))
    assert not drawn.with_suffix(".png").exists()
