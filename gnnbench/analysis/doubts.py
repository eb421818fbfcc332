"""Doubts of rows, and one sentence for all rows whose doubts differ in numbers alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gnnbench.core.text import printable

DOUBT = "(?)"
# Ends the reason of a row that is `unstable` because of its doubts.
NO_VERDICT = (
    "it was so again when repeated, so there is no verdict; run again on a quiet machine with"
    " --only-failed"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_HOLE = "\0"  # where a number stood; in no printable text


def in_doubt(row: Mapping[str, Any]) -> bool:
    """Whether a row's times and ratio are not to be trusted: in doubt, or never steady."""
    return bool(row.get("doubtful")) or row.get("status") == "unstable"


def doubts_of(row: Mapping[str, Any]) -> str:
    """All that makes a row doubtful, joined by "; ": also the reason, where it says so."""
    found = str(row.get("doubtful") or "").split("; ")
    if str(row.get("reason") or "").endswith(NO_VERDICT):
        found = [*row["reason"].removesuffix(NO_VERDICT).split("; "), *found, NO_VERDICT]
    return "; ".join(dict.fromkeys(filter(None, found)))


def told_once(doubts: Mapping[str, str]) -> list[str]:
    """One line for all rows of a reason, by the rows' names; each number as the range it has.

    ``{"a": "used 0.3 cores; close it", "b": "used 1.1 cores; close it"}`` is
    ``["(?) a, b: used 0.3 to 1.1 cores; close it"]``; where all in doubt share it, names are left
    out: the mark in the table says which.
    """
    groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for name, doubt in doubts.items():
        parts = printable(doubt).split("; ")
        shape = tuple(dict.fromkeys(_NUMBER.sub(_HOLE, p) for p in parts))
        groups.setdefault(shape, {}).setdefault(name, []).extend(parts)
    alone = len(groups) == 1 and len(doubts) > 1
    return [
        f"(?){'' if alone else ' ' + ', '.join(rows)}: "
        + "; ".join(_ranged(part, [p for own in rows.values() for p in own]) for part in shape)
        for shape, rows in groups.items()
    ]


def _ranged(shape: str, parts: list[str]) -> str:
    """A part of a reason with its numbers: the least to the greatest of those of its shape."""
    found = [_NUMBER.findall(p) for p in parts if _NUMBER.sub(_HOLE, p) == shape]
    ends = [(min(values, key=float), max(values, key=float)) for values in zip(*found, strict=True)]
    told = iter(low if float(low) == float(high) else f"{low} to {high}" for low, high in ends)
    return re.sub(_HOLE, lambda _: next(told), shape) if ends else shape
