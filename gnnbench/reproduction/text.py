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
from gnnbench.core.units import plural
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.number_text import measured, printed
from gnnbench.reproduction.verdict import HOLDS, NOT_REPRODUCED, ON_TWIN, REFUTED, VERDICTS

OUTSIDE = "outside"  # of a number: only the claim is refuted


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
        lines.append(safe.unmarked(f"{j.claim.id}: {j.claim.says}: {j.verdict}{reason}"))
    if any(j.verdict == NOT_REPRODUCED for j in verdicts):
        lines.append(f"{NOT_REPRODUCED}: {VERDICTS[NOT_REPRODUCED]}")
    return [*lines, count(verdicts)]


def count(verdicts: Sequence[ClaimVerdict]) -> str:
    """``3 hold, 1 refuted ...`` in the order of the verdicts."""
    by = Counter(j.verdict for j in verdicts)
    counts = ", ".join(f"{by[v]} {_plural_verb(v, by[v])}" for v in VERDICTS if by[v])
    return "; ".join([f"{plural(len(verdicts), 'claim')}: {counts}", *_reservations(verdicts)])


def _reservations(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """How many claims hold without a run, and how many by a twin that was fitted to them."""
    computed = sum(j.verdict == HOLDS and j.is_computed for j in verdicts)
    fitted = sum(j.verdict == ON_TWIN and bool(j.fitted) for j in verdicts)
    notes = []
    if computed:
        many = f"{computed} of the claims that hold follow"
        some = "1 claim that holds follows" if computed == 1 else many
        notes.append(f"{some} from arithmetic on the papers' numbers, without a run")
    if fitted == 1:
        one = "1 claim that holds on a twin has the very number to which its twin was fitted"
        notes.append(one)
    elif fitted:
        notes.append(
            f"{fitted} of the claims that hold on a twin have the very number to which their twin"
            " was fitted"
        )
    return notes


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
        "claim": claim.id, "verdict": judged.verdict, "reason": safe.unmarked(judged.reason),
        "source": claim.source, "says": safe.unmarked(claim.says), "unit": claim.unit,
    }  # fmt: skip


def _number_fields(judged: ClaimVerdict) -> list[NumberFields]:
    return [
        *(_fields_of(finding, "published") for finding in judged.findings),
        *(_fields_of(finding, "improved") for finding in judged.improved),
    ]


def _fields_of(finding: Finding, variant: str) -> NumberFields:
    known, (low, high) = finding.estimate, finding.expected
    return {
        "what": safe.unmarked(finding.label),
        "dataset": " ".join(dict.fromkeys(str(r["dataset"]) for r in finding.rows)),
        "run": str(finding.evidence.run.path) if finding.evidence else "",
        "value": _finite(known.value), "low": _finite(known.low), "high": _finite(known.high),
        "n": known.n, "expected_low": _finite(low), "expected_high": _finite(high),
        "finding": OUTSIDE if finding.verdict == REFUTED else finding.verdict,
        "finding_reason": safe.unmarked(finding.reason),
        "variant": variant,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
