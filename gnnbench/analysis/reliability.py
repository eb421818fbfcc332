"""Unreliable rows: marks, reasons, and one sentence for all rows that share a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gnnbench.analysis.grouping import group_by
from gnnbench.core.text import printable
from gnnbench.statistics.stopping_rule import Rule

UNRELIABLE_MARK = "(?)"
ONE_OF_MANY_MARK = "*"
# Ends the reason of a row that is `unstable` because its measurements are unreliable.
NO_VERDICT = (
    "it was so again when repeated, so there is no verdict; run again on a quiet machine with"
    " --only-failed"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PLACEHOLDER = "\0"  # replaces a number; occurs in no printable text


def is_unreliable(row: Mapping[str, object]) -> bool:
    """Whether a row's times and ratio are doubtful or never became steady."""
    return bool(row.get("doubtful")) or row.get("status") == "unstable"


def verdict(row: Mapping[str, object]) -> str:
    """A row's verdict for a table, with ``ONE_OF_MANY_MARK`` if it may be chance.

    In a table of many comparisons, some differ by chance: see the column ``p_adjusted``.
    """
    text, p_adjusted = str(row.get("verdict") or ""), row.get("p_adjusted")
    by_chance = isinstance(p_adjusted, float) and p_adjusted > Rule.alpha
    return text + ONE_OF_MANY_MARK * (by_chance and text in ("faster", "slower"))


def reasons_for_doubt(row: Mapping[str, object]) -> str:
    """All reasons why a row is unreliable, joined by "; "; "" for a reliable row."""
    reasons = str(row.get("doubtful") or "").split("; ")
    reason = str(row.get("reason") or "")
    if reason.endswith(NO_VERDICT):
        reasons = [*reason.removesuffix(NO_VERDICT).split("; "), *reasons, NO_VERDICT]
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def summarize_doubts(doubts: Mapping[str, str]) -> list[str]:
    """One line for all rows whose reasons differ in numbers only, with the range of each number.

    ``doubts`` has reasons by the label of a row:
    ``{"a": "used 0.3 cores; close it", "b": "used 1.1 cores; close it"}`` becomes
    ``["(?) a, b: used 0.3 to 1.1 cores; close it"]``. Labels are left out where all rows share the
    reasons, because the table marks these rows.
    """
    clauses = {label: printable(doubt).split("; ") for label, doubt in doubts.items()}
    groups = group_by(clauses, lambda label: tuple(dict.fromkeys(map(_shape, clauses[label]))))
    all_alike = len(groups) == 1 and len(doubts) > 1
    return [
        f"{UNRELIABLE_MARK}{'' if all_alike else ' ' + ', '.join(group)}: "
        + "; ".join(_with_ranges(shape, (c for g in group for c in clauses[g])) for shape in shapes)
        for shapes, group in groups.items()
    ]


def _shape(clause: str) -> str:
    return _NUMBER.sub(_PLACEHOLDER, clause)


def _with_ranges(shape: str, clauses: Iterable[str]) -> str:
    """A clause whose numbers are replaced by their range over ``clauses`` of this shape."""
    numbers = [_NUMBER.findall(c) for c in clauses if _shape(c) == shape]
    ends = [(min(n, key=float), max(n, key=float)) for n in zip(*numbers, strict=True)]
    ranges = iter(low if float(low) == float(high) else f"{low} to {high}" for low, high in ends)
    return re.sub(_PLACEHOLDER, lambda _: next(ranges), shape) if ends else shape
