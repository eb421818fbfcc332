"""How fast rows were read, beside what mere copying takes, and the requests that a row costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Cell
from gnnbench.core.counters import COPY_TIME, FEATURE_BYTES
from gnnbench.harness.pair_columns import Value, level
from gnnbench.kernels.reference.zero_copy import lines, requests

Record = dict[str, Any]
Row = dict[str, Any]

KEPT = "reused"  # rows that are there already are not read
ALIGNMENTS = 32  # elements of a line: where a row may begin
MODEL_ELEMENTS = 1 << 18  # of the rows that the model goes through


def _counted(sample: Record, measure: str) -> dict[str, float]:
    counts = sample.get("counts") or ()
    return {c[2]: c[3] for c in counts if tuple(c[:2]) == ("features", measure)}


def served(sample: Record) -> dict[str, int]:
    """Bytes of rows that an epoch read, by where they were."""
    found = _counted(sample, FEATURE_BYTES.name)
    return {where: int(size) for where, size in found.items() if where != KEPT}


def rate_rows(cell: Cell, lives: Sequence[Sequence[Record]]) -> list[Row]:
    """Rows of ``metrics.csv``: bytes a second, of a cell's rows and of copies of as many."""

    def of_rows(sample: Record) -> float | None:
        size, seconds = sum(served(sample).values()), sample["memory_io_time_s"]
        return size / seconds if size and seconds else None

    def of_copy(sample: Record) -> float | None:
        copies, seconds = _counted(sample, COPY_TIME.name), sample["memory_io_time_s"]
        return sum(copies.values()) / seconds if copies and seconds else None

    def copied(where: str) -> Value:
        def rate(sample: Record) -> float | None:
            seconds = _counted(sample, COPY_TIME.name).get(where)
            return served(sample)[where] / seconds if seconds else None

        return rate

    paths = dict.fromkeys(p for life in lives for s in life for p in _counted(s, COPY_TIME.name))
    wanted: list[tuple[m.Measure, str, Value]] = [
        (m.ROW_RATE, "", of_rows),
        (m.OF_COPY, "", of_copy),
        *((m.COPY_RATE, where, copied(where)) for where in paths),
    ]
    found = [(what, where, level(lives, value)) for what, where, value in wanted]
    return [m.metric(cell.id, "features", what, e, where=w) for what, w, e in found if e.n]


def request_rows(cell: Cell, facts: Mapping[str, Any]) -> list[Row]:
    """The same of the requests for a row of a gather's table: facts of its width."""
    if not cell.gathers or not facts.get("feature_dim"):
        return []
    return [
        m.metric(cell.id, "features", m.REQUESTS, value, where=way)
        for way, value in requests_per_row(facts["feature_dim"]).items()
    ]


@lru_cache(maxsize=256)
def requests_per_row(features: int) -> dict[str, float]:
    """Mean requests for float32 rows at all alignments, by PyTorch-Direct's address model.

    ``naive`` and ``aligned`` are its Listings, ``lines`` those that a row lies in: the fewest.
    """
    count = min(max(MODEL_ELEMENTS // features, 1), ALIGNMENTS**2)
    # Far from one another, so that no line holds two of them.
    ids = np.random.default_rng(0).permutation(ALIGNMENTS**2)[:count] * (ALIGNMENTS + 1)
    return {
        "naive": requests(ids, features) / count,
        "aligned": requests(ids, features, aligned=True) / count,
        "lines": lines(ids, features) / count,
    }
