"""Rows that are one system at several numbers of ranks: strong and weak scaling."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from gnnbench.analysis.labels import labels
from gnnbench.schema import CellRow

Series = dict[str, dict[int, CellRow]]  # by label and number of ranks

STRONG, WEAK = "strong", "weak"
SCHEDULE, RANKS, BATCH = "schedule", "ranks", "batch_size"
BATCHES, WHOLE = "batches", "whole"  # an update has a batch of each rank


def strong(rows: Sequence[CellRow]) -> Series:
    """Measured rows with as many seeds in an update, by any number of ranks."""
    return _series(rows, lambda seeds, ranks: seeds)


def weak(rows: Sequence[CellRow]) -> Series:
    """Measured rows whose updates have seeds in proportion to the number of ranks."""
    return _series(rows, lambda seeds, ranks: seeds / ranks)


def _series(rows: Sequence[CellRow], seeds_key: Callable[[int, int], float]) -> Series:
    """Rows of one series have equal ``seeds_key`` of the seeds of an update and the ranks, and
    settings equal but for ranks and batch."""
    measured = []
    with_one_rank: list[dict[str, object]] = []  # labels of these are equal within a series
    for row in rows:
        recipe = json.loads(row["recipe"] or "{}")
        ranks = recipe.get(SCHEDULE, {}).get(RANKS)
        if ranks is None or row["status"] not in ("ok", "unstable"):
            continue
        one = {**recipe, SCHEDULE: {**recipe[SCHEDULE], RANKS: 1}}
        measured.append((ranks, row))
        whole = recipe[SCHEDULE].get(BATCHES) == WHOLE
        batch = f"{seeds_key(row[BATCH] * (ranks if whole else 1), ranks):g}"
        with_one_rank.append({**row, "recipe": json.dumps(one), BATCH: batch})
    named, series = labels(with_one_rank), Series()
    for (ranks, row), one_rank in zip(measured, with_one_rank, strict=True):
        series.setdefault(named.of(one_rank), {})[ranks] = row
    return series
