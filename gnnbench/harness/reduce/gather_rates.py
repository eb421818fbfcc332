"""Rates of gathering feature rows, compared with plain copies, and memory requests per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    from gnnbench.schema.reports import GraphFacts
    from gnnbench.schema.samples import Count, EpochSample

REUSED = "reused"  # rows of the previous batch, which are not read
ALIGNMENTS = 32  # elements of a cache line: offsets at which a row may begin
MODEL_ELEMENTS = 1 << 18  # of all rows of the address model


def _counted(counts: Iterable[Count], measure: str) -> dict[str, float]:
    return {c.where: c.value for c in counts if (c.stage, c.name) == ("features", measure)}


def served(counts: Iterable[Count]) -> dict[str, int]:
    """Bytes of rows that an epoch read, by their location."""
    sizes = _counted(counts, FEATURE_BYTES.name)
    return {where: int(size) for where, size in sizes.items() if where != REUSED}


def rate_rows(cell: Cell, trials: Sequence[Sequence[EpochSample]]) -> list[MetricRow]:
    """Rows of ``metrics.csv``: bytes per second of gathers, and of copies of as many bytes."""

    def of_rows(sample: EpochSample) -> float | None:
        size, seconds = sum(served(sample.counts).values()), sample.memory_io_time_s
        return size / seconds if size and seconds else None

    def of_copy(sample: EpochSample) -> float | None:
        copies, seconds = _counted(sample.counts, COPY_TIME.name), sample.memory_io_time_s
        return sum(copies.values()) / seconds if copies and seconds else None

    def copied(where: str) -> Value:
        def rate(sample: EpochSample) -> float | None:
            seconds = _counted(sample.counts, COPY_TIME.name).get(where)
            return served(sample.counts)[where] / seconds if seconds else None

        return rate

    samples = [s for trial in trials for s in trial]
    paths = dict.fromkeys(p for s in samples for p in _counted(s.counts, COPY_TIME.name))
    values: list[tuple[m.Metric, str, Value]] = [
        (m.ROW_RATE, "", of_rows),
        (m.OF_COPY, "", of_copy),
        *((m.COPY_RATE, where, copied(where)) for where in paths),
    ]
    rates = [(measured, where, level(trials, value)) for measured, where, value in values]
    return [m.metric(cell.id, "features", rate, e, where=w) for rate, w, e in rates if e.n]


def request_rows(cell: Cell, facts: GraphFacts) -> list[MetricRow]:
    """Rows of ``metrics.csv``: memory requests per row of a gather, from the table's width."""
    width = facts.get("feature_dim")
    if not cell.gathers or not width:
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
