"""The block of headline results in ``README.md``, written from the committed runs."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis import headlines
from gnnbench.analysis.headlines import Figure, Headline, Result
from gnnbench.analysis.reliability import is_unreliable
from gnnbench.core.errors import UsageError
from gnnbench.schema import CellRow

START = "<!-- headlines: written by python -m gnnbench.analysis.report -->"
END = "<!-- end of headlines -->"
MIN_PAIRS = 5


def rows() -> list[Headline]:
    """The headlines of ``README.md``."""
    return [row for group in headlines.selection().group for row in group.row if row.readme]


def figures() -> list[Figure]:
    """The figures of ``README.md``."""
    return [figure for figure in headlines.selection().figure if figure.readme]


def with_block(text: str, lines: Sequence[str]) -> str:
    """The text of ``README.md`` with ``lines`` between its marks.

    Raises ``UsageError`` unless it has each mark once, in order.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end) or START in rest or END in before + after:
        raise UsageError(f"README.md needs one line '{START}' and, below it, one line '{END}'")
    return "\n".join([before + START, "", *lines, "", END + after])


def check(result: Result) -> None:
    """Raise ``UsageError`` for a ratio of fewer than ``MIN_PAIRS`` pairs or an unreliable one."""
    pairs = result.row["pairs"] or 0
    if pairs >= MIN_PAIRS and not is_unreliable(result.row):
        return
    why = f"has fewer than {MIN_PAIRS} pairs" if pairs < MIN_PAIRS else "is unreliable"
    raise UsageError(
        f"the ratio of '{result.headline.measured}' in '{result.run.path}' {why}, so README.md"
        " cannot show it; measure it again, or remove 'readme' from headlines.toml"
    )


def notes(results: Sequence[Result]) -> list[str]:
    """Sentences: which rows measure a part of an epoch, and which have other random numbers."""
    cells = {number: _cell(result) for number, result in enumerate(results, 1)}
    cut = {n: cell for n, cell in cells.items() if cell["batches"] < cell["epoch_batches"]}
    parts = [f"row {n} the first {c['batches']} of {c['epoch_batches']}" for n, c in cut.items()]
    others = [str(n) for n, r in enumerate(results, 1) if r.row["work_class"] == "equivalent"]
    sentences = []
    if parts:
        sentences.append(f"Measured batches of an epoch: {', '.join(parts)}; all in other rows.")
    if others:
        where = f"{'rows' if len(others) > 1 else 'row'} {' and '.join(others)}"
        sentences.append(
            f"In {where} (from the top) both systems sample from the same distribution with"
            " different random numbers; in other rows they sample identical edges."
        )
    return sentences


def _cell(result: Result) -> CellRow:
    """The measured cell of a headline."""
    if isinstance(result.row, CellRow):
        return result.row
    second = result.row["pair"].partition("-")[2]
    return next(cell for cell in result.run.cells if cell["id"] == second)
