"""Rows of a run that are one system at several numbers of ranks: strong and weak scaling."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnbench.analysis.labels import labels

Row = Mapping[str, Any]
Series = dict[str, dict[int, Row]]  # by name, then by ranks

STRONG, WEAK = "strong", "weak"
SCHEDULE, RANKS, BATCH = "schedule", "ranks", "batch_size"


def strong(rows: Sequence[Row]) -> Series:
    """Measured rows that share their batches and all else but ranks, by name and ranks."""
    return _series(rows, lambda row, ranks: row[BATCH])


def weak(rows: Sequence[Row]) -> Series:
    """The same where each rank has as many seeds: a batch of N ranks is N times as large."""
    return _series(rows, lambda row, ranks: row[BATCH] / ranks)


def _series(rows: Sequence[Row], kept: Callable[[Row, int], float]) -> Series:
    """``kept``: what rows of a series have in common beside all that is neither ranks nor batch."""
    few, alike = [], []  # the rows, and each as if it had one rank
    for row in rows:
        recipe = json.loads(row["recipe"] or "{}")
        ranks = recipe.get(SCHEDULE, {}).get(RANKS)
        if ranks is None or row["status"] not in ("ok", "unstable"):
            continue
        one = {**recipe, SCHEDULE: {**recipe[SCHEDULE], RANKS: 1}}
        few.append((ranks, row))
        alike.append({**row, "recipe": json.dumps(one), BATCH: f"{kept(row, ranks):g}"})
    named, found = labels(alike), Series()
    for (ranks, row), one in zip(few, alike, strict=True):
        found.setdefault(named.of(one), {})[ranks] = row
    return found
