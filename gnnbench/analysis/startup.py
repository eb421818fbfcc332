"""How long the cells of a run took to be ready, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.core.units import seconds
from gnnbench.schema import MetricRow

Row = Mapping[str, Any]

APART = "from its process to ready for the gate; a framework's own import and locking memory apart"


def start_line(rows: Sequence[Row], metrics: Sequence[MetricRow]) -> list[str]:
    """The quickest and the slowest; nothing where no cell told (rows of ``metrics.csv``)."""
    known, named = Metrics(metrics), labels(rows)
    found = [(value, r) for r in rows if (value := known.value(r["id"], "start", m.START))]
    if not found:
        return []
    (least, quick), (most, slow) = (end(found, key=lambda f: f[0]) for end in (min, max))
    told = seconds(most)
    if len(found) > 1:
        told = f"{seconds(least)} ({named.of(quick)}) to {told} ({named.of(slow)})"
    return [f"a cell's start took {told}, {APART}"]
