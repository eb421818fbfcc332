"""Claims and their verdicts in words and lines: for a terminal, for a page, for programs."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gnnbench.analysis.table_layout import Part
from gnnbench.core import text as safe
from gnnbench.core.units import gigabytes, plural
from gnnbench.reproduction.claim import Claim, Point
from gnnbench.reproduction.judge import Finding, Judged
from gnnbench.reproduction.verdict import VERDICTS

HEADS = ("claim", "verdict", "paper", "measured")
COLUMNS = (
    "claim", "verdict", "reason", "source", "says", "unit", "what", "dataset", "run", "value",
    "low", "high", "n", "expected_low", "expected_high", "finding", "finding_reason",
)  # fmt: skip


def number(value: float, unit: str) -> str:
    """``71.4 %`` of a share, ``2.03x`` of a ratio, ``1.4 GB`` of bytes, else six digits."""
    if math.isnan(value):
        return "?"
    if unit == "B":
        return f"{gigabytes(value)} GB"
    if unit == "%":
        return f"{100 * value:.4g} %"
    return f"{value:.3g}x" if unit == "x" else f"{value:.6g}"


def printed(claim: Claim) -> str:
    """What the paper has it to be, each number once."""
    told = [expected(claim, point) for point in claim.numbers() if claim.measure]
    return ", ".join(dict.fromkeys(told))


def expected(claim: Claim, point: Point) -> str:
    """What the paper has a point to be: its number, or from where to where it may lie."""
    unit = claim.unit
    if point.number is not None:
        if isinstance(point.number, tuple):
            return " to ".join(number(v, unit) for v in point.number)
        up = {"upto": "up to ", "mean": "mean "}.get(claim.kind, "")
        return up + number(point.number, unit)
    ends = [("at least ", point.least), ("at most ", point.most)]
    return ", ".join(word + number(v, unit) for word, v in ends if v is not None)


def measured(judged: Judged) -> str:
    """The number with its interval, or from which to which several lie."""
    known = [f.estimate for f in judged.findings if not math.isnan(f.estimate.value)]
    unit = judged.claim.unit
    if not known:
        return ""
    if len(known) == 1:
        return estimate(judged.findings[0], unit)
    values = [e.value for e in known]
    ends = " to ".join(dict.fromkeys(number(v, unit) for v in (min(values), max(values))))
    return f"{ends} ({len(known)} numbers)"


def allowed(finding: Finding, unit: str) -> str:
    """From where to where the number may lie; "" where only a mean with others may."""
    low, high = (number(v, unit) if math.isfinite(v) else "" for v in finding.expected)
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else ""


def estimate(finding: Finding, unit: str) -> str:
    """``0.72 [0.71, 0.74]``; of an exact number no interval."""
    found = finding.estimate
    told = number(found.value, unit)
    if math.isnan(found.low) or found.low == found.high:
        return told
    return f"{told} [{number(found.low, unit)}, {number(found.high, unit)}]"


def part(found: Sequence[Judged]) -> Part:
    """One line a claim."""
    lines = [
        {
            "claim": j.claim.id, "verdict": j.verdict, "paper": printed(j.claim),
            "measured": measured(j),
        }
        for j in found
    ]  # fmt: skip
    return Part(HEADS, lines)


def remarks(found: Sequence[Judged]) -> list[str]:
    """What each claim says and why its verdict is what it is, and in the end how many of each."""
    lines = []
    for j in found:
        why = f" ({j.reason})" if j.reason else ""
        lines.append(f"{j.claim.id}: {j.claim.says}: {j.verdict}{why}")
    return [*lines, count(found)]


def count(found: Sequence[Judged]) -> str:
    """``3 hold, 1 refuted ...`` in the order of the verdicts."""
    by = Counter(j.verdict for j in found)
    told = ", ".join(f"{by[v]} {_verb(v, by[v])}" for v in VERDICTS if by[v])
    computed = sum(bool(j.findings) and all(f.opened is None for f in j.findings) for j in found)
    apart = f"; {computed} of them computed by the papers' own formulas, not measured"
    return f"{plural(len(found), 'claim')}: {told}{apart if computed else ''}"


def _verb(verdict: str, count: int) -> str:
    """``1 holds``, ``2 hold in shape``."""
    return verdict if count == 1 else verdict.replace("holds", "hold")


def to_json(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """One object per claim: its verdict, and the numbers that it rests on."""
    return [{**_claim_row(j), "numbers": [_row(finding) for finding in j.findings]} for j in found]


def to_csv(found: Sequence[Judged]) -> str:
    """A line a number, with what the claim comes to; a claim without numbers has one, too."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for judged in found:
        for row in [_row(f) for f in judged.findings] or [{}]:
            row = {**_claim_row(judged), **row}
            writer.writerow({key: safe.csv_cell(value) for key, value in row.items()})
    return text.getvalue()


def _claim_row(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    return {
        "claim": claim.id, "verdict": judged.verdict, "reason": judged.reason,
        "source": claim.source, "says": claim.says, "unit": claim.unit,
    }  # fmt: skip


def _row(finding: Finding) -> dict[str, Any]:
    found, (low, high) = finding.estimate, finding.expected
    row = {
        "what": finding.what,
        "dataset": " ".join(dict.fromkeys(str(r["dataset"]) for r in finding.rows)),
        "run": str(finding.opened.run.path) if finding.opened else "",
        "value": found.value, "low": found.low, "high": found.high, "n": found.n,
        "expected_low": low, "expected_high": high,
        "finding": finding.verdict, "finding_reason": finding.reason,
    }  # fmt: skip
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
