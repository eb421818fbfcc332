"""Claims and verdicts as text: for a terminal, for a page, for programs."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from gnnbench.analysis.table_layout import TextTable
from gnnbench.core import text as safe
from gnnbench.core.units import gigabytes, plural
from gnnbench.reproduction.claim import Claim, ClaimPoint
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.verdict import VERDICTS


class ClaimFields(TypedDict):
    """A claim in JSON and CSV."""

    claim: str
    verdict: str
    reason: str
    source: str
    says: str
    unit: str


class NumberFields(TypedDict):
    """A number of a claim in JSON and CSV; None for a number that is not finite."""

    what: str
    dataset: str
    run: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    expected_low: float | None
    expected_high: float | None
    finding: str
    finding_reason: str
    variant: str


class ClaimObject(ClaimFields):
    """A claim in JSON with its numbers."""

    numbers: list[NumberFields]


HEADS = ("claim", "verdict", "paper", "measured")
COLUMNS = (*ClaimFields.__annotations__, *NumberFields.__annotations__)


def number(value: float, unit: str) -> str:
    """``71.4 %`` of a share, ``2.03x`` of a ratio, ``1.4 GB`` of bytes, else six digits.

    From a million on a count has all digits, in groups of three.
    """
    if math.isnan(value):
        return "?"
    if unit == "B":
        return f"{gigabytes(value)} GB"
    if unit == "%":
        return f"{100 * value:.4g} %"
    if unit == "x":
        return f"{value:.3g}x"
    return f"{value:,.0f}" if 1e6 <= abs(value) < math.inf else f"{value:.6g}"


def printed(claim: Claim) -> str:
    """The paper's numbers, each once."""
    numbers = [expected(claim, point) for point in claim.claim_points() if claim.measure]
    return ", ".join(dict.fromkeys(numbers))


def expected(claim: Claim, point: ClaimPoint) -> str:
    """The paper's number of a point, or its bounds."""
    unit = claim.unit
    if point.number is not None:
        if isinstance(point.number, tuple):
            return " to ".join(number(v, unit) for v in point.number)
        prefix = {"upto": "up to ", "mean": "mean "}.get(claim.kind, "")
        return prefix + number(point.number, unit)
    bounds = [("at least ", point.least), ("at most ", point.most)]
    return ", ".join(prefix + number(v, unit) for prefix, v in bounds if v is not None)


def measured(judged: ClaimVerdict) -> str:
    """The measured number with its interval, or the range of several numbers.

    Those of the published variant: the reason has the improved one's.
    """
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
    """The claimed range of a number; "" where only the mean of several numbers is claimed."""
    low, high = (number(v, unit) if math.isfinite(v) else "" for v in finding.expected)
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else ""


def estimate(finding: Finding, unit: str) -> str:
    """``0.72 [0.71, 0.74]``; an exact number has no interval."""
    known = finding.estimate
    value = number(known.value, unit)
    if math.isnan(known.low) or known.low == known.high:
        return value
    return f"{value} [{number(known.low, unit)}, {number(known.high, unit)}]"


def part(verdicts: Sequence[ClaimVerdict]) -> TextTable:
    """A table with one line for each claim."""
    lines = [
        {
            "claim": j.claim.id, "verdict": j.verdict, "paper": printed(j.claim),
            "measured": measured(j),
        }
        for j in verdicts
    ]  # fmt: skip
    return TextTable(HEADS, lines)


def remarks(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Each claim's statement, verdict and reason, and at the end the count of each verdict."""
    lines = []
    for j in verdicts:
        reason = f" ({j.reason})" if j.reason else ""
        lines.append(f"{j.claim.id}: {j.claim.says}: {j.verdict}{reason}")
    return [*lines, count(verdicts)]


def count(verdicts: Sequence[ClaimVerdict]) -> str:
    """``3 hold, 1 refuted ...`` in the order of the verdicts."""
    by = Counter(j.verdict for j in verdicts)
    counts = ", ".join(f"{by[v]} {_plural_verb(v, by[v])}" for v in VERDICTS if by[v])
    computed = sum(
        bool(j.findings) and all(f.evidence is None for f in j.findings) for j in verdicts
    )
    note = f"; {computed} of them computed by the papers' own formulas, not measured"
    return f"{plural(len(verdicts), 'claim')}: {counts}{note if computed else ''}"


def _plural_verb(verdict: str, count: int) -> str:
    """``1 holds``, ``2 hold in shape``."""
    return verdict if count == 1 else verdict.replace("holds", "hold")


def to_json(verdicts: Sequence[ClaimVerdict]) -> list[ClaimObject]:
    """One object for each claim, with its verdict and numbers."""
    return [{**_claim_fields(j), "numbers": _number_fields(j)} for j in verdicts]


def to_csv(verdicts: Sequence[ClaimVerdict]) -> str:
    """One line for each number with its claim; a claim without numbers has one line, too."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for judged in verdicts:
        numbers: list[Mapping[str, object]] = [*_number_fields(judged)]
        for fields in numbers or [{}]:
            row = {**_claim_fields(judged), **fields}
            writer.writerow({key: safe.csv_cell(value) for key, value in row.items()})
    return text.getvalue()


def _claim_fields(judged: ClaimVerdict) -> ClaimFields:
    claim = judged.claim
    return {
        "claim": claim.id, "verdict": judged.verdict, "reason": judged.reason,
        "source": claim.source, "says": claim.says, "unit": claim.unit,
    }  # fmt: skip


def _number_fields(judged: ClaimVerdict) -> list[NumberFields]:
    return [
        *(_fields_of(finding, "published") for finding in judged.findings),
        *(_fields_of(finding, "improved") for finding in judged.improved),
    ]


def _fields_of(finding: Finding, variant: str) -> NumberFields:
    known, (low, high) = finding.estimate, finding.expected
    return {
        "what": finding.label,
        "dataset": " ".join(dict.fromkeys(str(r["dataset"]) for r in finding.rows)),
        "run": str(finding.evidence.run.path) if finding.evidence else "",
        "value": _finite(known.value), "low": _finite(known.low), "high": _finite(known.high),
        "n": known.n, "expected_low": _finite(low), "expected_high": _finite(high),
        "finding": finding.verdict, "finding_reason": finding.reason, "variant": variant,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
