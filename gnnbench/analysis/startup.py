"""Start-up times of a run, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.core.units import seconds
from gnnbench.schema import CellRow, MetricRow

DEFINITION = "from process start to the gate, without a framework's import and locking memory"


def startup_line(rows: Sequence[CellRow], metrics: Sequence[MetricRow]) -> list[str]:
    """The shortest and the longest start-up time; nothing if no cell reports one."""
    known, named = Metrics(metrics), labels(rows)
    reported = [(value, r) for r in rows if (value := known.value(r["id"], "start", m.START))]
    if not reported:
        return []
    (shortest, first), (longest, last) = (
        select(reported, key=lambda pair: pair[0]) for select in (min, max)
    )
    text = seconds(longest)
    if len(reported) > 1:
        text = f"{seconds(shortest)} ({named.of(first)}) to {text} ({named.of(last)})"
    return [f"start-up: {text}, {DEFINITION}"]
