"""A comparison for people (table), for a merge request (Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields

from rich.table import Table

from gnnbench.measure import judged
from gnnbench.results.compare import Compared, Comparison
from gnnbench.results.units import seconds

HEAD = ("cell", "judged by", "A", "B", "B is", "95 % interval", "verdict", "")


def _line(c: Compared) -> list[str]:
    ratio = "" if c.ratio is None else f"{c.ratio:.3f}x"
    interval = "" if c.ci_low is None or c.ci_high is None else f"[{c.ci_low:.3f}, {c.ci_high:.3f}]"
    times = [seconds(c.a_s), seconds(c.b_s)]
    by = judged.of(c.until).words
    return [c.cell, by, *times, ratio, interval, c.verdict, c.reason]


def table(found: Comparison) -> Table:
    """One line per cell; ``B is`` says how many times as fast as A."""
    result = Table(*HEAD, box=None, pad_edge=False, header_style="bold")
    for cell in found.cells:
        result.add_row(*_line(cell))
    return result


def remarks(found: Comparison) -> list[str]:
    """What is missing, what warns, and the end in one line."""
    lines = [f"only in A: {cell}" for cell in found.only_a]
    lines += [f"only in B: {cell}" for cell in found.only_b]
    lines += [f"careful: {text}" for text in found.warnings]
    counts = {
        v: sum(c.verdict == v for c in found.cells)
        for v in ("faster", "slower", "tie", "incomparable")
    }
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
