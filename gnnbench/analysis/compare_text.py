"""A comparison for people (table), for a merge request (Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from typing import Any

from gnnbench.analysis.compare import VERDICTS, Compared, Comparison
from gnnbench.analysis.table_layout import Part, in_units
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
RATIOS = "A, B: speed-up over the reference that ran beside each, pair by pair; B/A: their change"


def _line(c: Compared) -> dict[str, Any]:
    ratios = ["" if r is None else f"{r:.3f}x" for r in (c.ratio_a, c.ratio_b, c.change)]
    ends = (c.change_ci_low, c.change_ci_high)
    interval = "" if None in ends else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
    times = [time(c.a_s), time(c.b_s)]
    told = [
        c.cell,
        primary_metric.of(c.until).words,
        *times,
        *ratios,
        interval,
        c.verdict,
        c.reason,
    ]
    return dict(zip(HEAD, told, strict=True))


def _lines(found: Comparison) -> list[dict[str, str]]:
    return in_units([_line(cell) for cell in found.cells], [("A", "B")])


def part(found: Comparison, narrow: bool = False) -> Part:
    """One line per cell; ``B over A``: how many times as fast, against the reference beside it.

    Empty columns are left out; ``narrow`` has ratios and verdict alone, in short heads, without
    the times, by which nobody judges, and the reasons, which ``reasons`` tells.
    """
    lines = _lines(found)
    heads = [h for h in (SHORT if narrow else HEAD) if any(line[h] for line in lines)]
    if not narrow:
        return Part(heads, lines)
    short = [{SHORT[h]: line[h] for h in heads} for line in lines]
    return Part([SHORT[h] for h in heads], short)


def reasons(found: Comparison) -> list[str]:
    """Why cells have the verdict that they have, where that is told: what ``narrow`` leaves out."""
    return [f"{c.cell}: {c.reason}" for c in found.cells if c.reason]


def remarks(found: Comparison) -> list[str]:
    """What is missing, what warns, and the end in one line."""
    lines = [f"only in A: {cell}" for cell in found.only_a]
    lines += [f"only in B: {cell}" for cell in found.only_b]
    lines += [f"careful: {text}" for text in found.warnings]
    counts = {v: sum(c.verdict == v for c in found.cells) for v in VERDICTS}
    told = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
    return [*lines, f"{plural(len(found.cells), 'cell')} in both: {told}"]


def markdown(found: Comparison) -> str:
    """A table and a list."""
    lines = [safe.markdown_line(found.common), ""] if found.common else []
    lines += Part(HEAD, _lines(found)).markdown()
    told = map(safe.markdown_line, remarks(found))
    return "\n".join([*lines, "", *(f"- {text}" for text in told)]) + "\n"


def latex(found: Comparison) -> str:
    """A ``tabular``; what surrounds the table is a comment."""
    lines = [f"% {safe.printable(found.common)}"] if found.common else []
    lines += Part(HEAD, _lines(found)).latex()
    return "\n".join([*lines, *(f"% {safe.printable(text)}" for text in remarks(found))]) + "\n"


def to_csv(found: Comparison) -> str:
    """One row per cell of either run; a cell that is in one only says so in ``reason``."""
    out = io.StringIO()
    names = [f.name for f in fields(Compared)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for cell in found.cells:
        writer.writerow({k: safe.csv_cell(v) for k, v in asdict(cell).items()})
    for side, cells in (("A", found.only_a), ("B", found.only_b)):
        for text in cells:
            reason = f"only in {side}: {text}"
            row = {"verdict": "incomparable", "reason": reason, "regression": False}
            writer.writerow({k: safe.csv_cell(v) for k, v in row.items()})
    return out.getvalue()
