"""A comparison for people (table), for a merge request (Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields

from rich.table import Table

from gnnbench.measure import judged
from gnnbench.results.compare import VERDICTS, Compared, Comparison
from gnnbench.results.units import seconds

HEAD = (
    "cell", "judged by", "A", "B", "A over its reference", "B over its reference", "B over A",
    "95 % interval", "verdict", "",
)  # fmt: skip
SHORT = {
    "cell": "cell", "A over its reference": "A", "B over its reference": "B", "B over A": "B/A",
    "95 % interval": "95 % interval", "verdict": "verdict",
}  # fmt: skip
RATIOS = "A, B: speed-up over the reference that ran beside each, pair by pair; B/A: their change"


def _line(c: Compared) -> list[str]:
    ratios = ["" if r is None else f"{r:.3f}x" for r in (c.ratio_a, c.ratio_b, c.change)]
    ends = (c.change_ci_low, c.change_ci_high)
    interval = "" if None in ends else f"[{ends[0]:.3f}, {ends[1]:.3f}]"
    times = [seconds(c.a_s), seconds(c.b_s)]
    return [c.cell, judged.of(c.until).words, *times, *ratios, interval, c.verdict, c.reason]


def table(found: Comparison, narrow: bool = False) -> Table:
    """One line per cell; ``B over A``: how many times as fast, against the reference beside it.

    Empty columns are left out; ``narrow`` has ratios and verdict alone, in short heads, without
    the times, by which nobody judges, and the reasons, which ``reasons`` tells.
    """
    lines = [dict(zip(HEAD, _line(cell), strict=True)) for cell in found.cells]
    heads = [h for h in (SHORT if narrow else HEAD) if any(line[h] for line in lines)]
    shown = [SHORT.get(h, h) if narrow else h for h in heads]
    result = Table(*shown, box=None, pad_edge=False, header_style="bold")
    for line in lines:
        result.add_row(*(line[h] for h in heads))
    return result


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
    return [*lines, f"{len(found.cells)} cells in both: {told}"]


def markdown(found: Comparison) -> str:
    """A table and a list."""
    head = [h or "remark" for h in HEAD]
    lines = [found.common, ""] if found.common else []
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cell in found.cells:
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in _line(cell)) + " |")
    return "\n".join([*lines, "", *(f"- {text}" for text in remarks(found))]) + "\n"


def to_csv(found: Comparison) -> str:
    """One row per cell of either run; a cell that is in one only says so in ``reason``."""
    out = io.StringIO()
    names = [f.name for f in fields(Compared)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for cell in found.cells:
        writer.writerow(asdict(cell))
    for side, cells in (("A", found.only_a), ("B", found.only_b)):
        for text in cells:
            reason = f"only in {side}: {text}"
            writer.writerow({"verdict": "incomparable", "reason": reason, "regression": False})
    return out.getvalue()
