"""Rates of gathering feature rows, compared with plain copies, and memory requests per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Cell
from gnnbench.core.counters import COPY_TIME, FEATURE_BYTES
from gnnbench.harness.reduce.comparison import Value, level
from gnnbench.kernels.reference.zero_copy import lines, requests
from gnnbench.schema import MetricRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import Record

REUSED = "reused"  # rows of the previous batch, which are not read
ALIGNMENTS = 32  # elements of a cache line: offsets at which a row may begin
MODEL_ELEMENTS = 1 << 18  # of all rows of the address model


def _counted(sample: Record, measure: str) -> dict[str, float]:
    counts = sample.get("counts") or ()
    return {c[2]: c[3] for c in counts if tuple(c[:2]) == ("features", measure)}


def served(sample: Record) -> dict[str, int]:
    """Bytes of rows that an epoch read, by their location."""
    sizes = _counted(sample, FEATURE_BYTES.name)
    return {where: int(size) for where, size in sizes.items() if where != REUSED}


def rate_rows(cell: Cell, trials: Sequence[Sequence[Record]]) -> list[MetricRow]:
    """Rows of ``metrics.csv``: bytes per second of gathers, and of copies of as many bytes."""

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

    samples = [s for trial in trials for s in trial]
    paths = dict.fromkeys(p for s in samples for p in _counted(s, COPY_TIME.name))
    values: list[tuple[m.Measure, str, Value]] = [
        (m.ROW_RATE, "", of_rows),
        (m.OF_COPY, "", of_copy),
        *((m.COPY_RATE, where, copied(where)) for where in paths),
    ]
    rates = [(measured, where, level(trials, value)) for measured, where, value in values]
    return [m.metric(cell.id, "features", rate, e, where=w) for rate, w, e in rates if e.n]


def request_rows(cell: Cell, facts: Mapping[str, object]) -> list[MetricRow]:
    """Rows of ``metrics.csv``: memory requests per row of a gather, from the table's width."""
    width = facts.get("feature_dim")
    if not cell.gathers or not isinstance(width, int) or not width:
        return []
    return [
        m.metric(cell.id, "features", m.REQUESTS, value, where=way)
        for way, value in requests_per_row(width).items()
    ]


@lru_cache(maxsize=256)
def requests_per_row(features: int) -> dict[str, float]:
    """Mean memory requests of a float32 row over all alignments, by PyTorch-Direct's address model.

    ``naive`` and ``aligned`` are the paper's listings; ``lines``, the minimum, counts the cache
    lines of a row.
    """
    count = min(max(MODEL_ELEMENTS // features, 1), ALIGNMENTS**2)
    # Far apart, so that no cache line has parts of two rows.
    ids = np.random.default_rng(0).permutation(ALIGNMENTS**2)[:count] * (ALIGNMENTS + 1)
    return {
        "naive": requests(ids, features) / count,
        "aligned": requests(ids, features, aligned=True) / count,
        "lines": lines(ids, features) / count,
    }
