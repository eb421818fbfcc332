"""A comparison as a table for a terminal, as Markdown and LaTeX, and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields

from gnnbench.analysis.compare import VERDICTS, ComparedCell, Comparison
from gnnbench.analysis.table_layout import Line, TextTable, in_units, nonempty
from gnnbench.core import text as safe
from gnnbench.core.units import plural, time
from gnnbench.statistics import primary_metric

HEAD = (
    "cell", "judged by", "A", "B", "A over its reference", "B over its reference", "B over A",
    "95 % interval", "verdict", "remark",
)  # fmt: skip
SHORT = {
    "cell": "cell", "A over its reference": "A", "B over its reference": "B", "B over A": "B/A",
    "95 % interval": "95 % interval", "verdict": "verdict",
}  # fmt: skip
RATIOS = "A, B: speed-up over the reference of the same run, from paired trials; B/A: the change"


def _line(cell: ComparedCell) -> Line:
    ratios = ["" if r is None else f"{r:.3f}x" for r in (cell.ratio_a, cell.ratio_b, cell.change)]
    ends = (cell.change_ci_low, cell.change_ci_high)
    interval = "" if None in ends else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
    primary = primary_metric.of(cell.until).words
    values = [cell.cell, primary, time(cell.a_s), time(cell.b_s), *ratios, interval]
    return dict(zip(HEAD, [*values, cell.verdict, cell.reason], strict=True))


def _lines(comparison: Comparison) -> list[dict[str, str]]:
    return in_units([_line(cell) for cell in comparison.cells], [("A", "B")])


def table(comparison: Comparison, narrow: bool = False) -> TextTable:
    """One line per cell without empty columns. ``B over A`` is the change of the speed-up.

    ``narrow`` has only ratios and verdict, under short headings. ``reasons`` has the rest.
    """
    lines = _lines(comparison)
    heads = nonempty(SHORT if narrow else HEAD, lines)
    if not narrow:
        return TextTable(heads, lines)
    short = [{SHORT[h]: line[h] for h in heads} for line in lines]
    return TextTable([SHORT[h] for h in heads], short)


def reasons(comparison: Comparison) -> list[str]:
    """Why cells have their verdict: the column that narrow tables lack."""
    return [f"{c.cell}: {c.reason}" for c in comparison.cells if c.reason]


def remarks(comparison: Comparison) -> list[str]:
    """Cells of one run only, warnings, and the number of cells by verdict."""
    lines = [f"only in A: {cell}" for cell in comparison.only_a]
    lines += [f"only in B: {cell}" for cell in comparison.only_b]
    lines += [f"careful: {text}" for text in comparison.warnings]
    counts = {v: sum(c.verdict == v for c in comparison.cells) for v in VERDICTS}
    verdicts = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    return [*lines, f"{plural(len(comparison.cells), 'cell')} in both: {verdicts}"]


def markdown(comparison: Comparison) -> str:
    """A table and a list of remarks."""
    lines = [safe.markdown_line(comparison.common), ""] if comparison.common else []
    lines += TextTable(HEAD, _lines(comparison)).markdown()
    items = map(safe.markdown_line, remarks(comparison))
    return "\n".join([*lines, "", *(f"- {text}" for text in items)]) + "\n"


def latex(comparison: Comparison) -> str:
    """A ``tabular``; heading and remarks are comments."""
    lines = [f"% {safe.printable(comparison.common)}"] if comparison.common else []
    lines += TextTable(HEAD, _lines(comparison)).latex()
    comments = map(safe.printable, remarks(comparison))
    return "\n".join([*lines, *(f"% {text}" for text in comments)]) + "\n"


def to_csv(comparison: Comparison) -> str:
    """One row per cell of either run. The ``reason`` names a cell that only one run has."""
    out = io.StringIO()
    names = [f.name for f in fields(ComparedCell)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for cell in comparison.cells:
        writer.writerow({k: safe.csv_cell(v) for k, v in asdict(cell).items()})
    for side, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        for text in cells:
            reason = f"only in {side}: {text}"
            row = {"verdict": "incomparable", "reason": reason, "regression": False}
            writer.writerow({k: safe.csv_cell(v) for k, v in row.items()})
    return out.getvalue()
