"""The short table of overlapped epochs: their bound, and how much phases slow one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.table import HEADS
from gnnbench.analysis.table_layout import Part
from gnnbench.core.cell import PHASES
from gnnbench.core.units import time, times
from gnnbench.schema import MetricRow

Row = Mapping[str, Any]

TITLE = "Overlap: epochs beside their bound; each phase over the same run by itself"


def overlap_table(rows: Sequence[Row], metrics: Sequence[MetricRow]) -> Part:
    """One line per right cell whose phases overlapped and were probed; no lines without one.

    ``floor`` is what one copy of the rows would take that crossed the link.
    """
    named, known = labels(rows), Metrics(metrics)
    slowed = {p: p.replace("memory_io", "memory IO") for p in PHASES}
    axes = [HEADS.get(axis, axis) for axis in named.axes]
    lines = []
    for row in rows:
        bound = known.value(row["id"], m.EPOCH, m.BOUND)
        floor = known.value(row["id"], m.EPOCH, m.FLOOR)
        if (
            (bound is None and floor is None)
            or row["status"] == "incorrect"
            or not row.get("overlap_s")
        ):
            continue
        line: dict[str, object] = {
            HEADS.get(axis, axis): text for axis, text in named.values(row).items()
        }
        line |= {"system": named.system(row), "epoch": time(row["epoch_wall_s"])}
        line |= {"bound": time(bound), "floor": time(floor)}
        line |= {"of bound": times(known.value(row["id"], m.EPOCH, m.OF_BOUND))}
        line |= {
            head: times(known.value(row["id"], phase, m.INTERFERENCE))
            for phase, head in slowed.items()
        }
        lines.append(line)
    told = [head for head in slowed.values() if any(line[head] for line in lines)]
    floors = ["floor"] * any(line["floor"] for line in lines)
    return Part((*axes, "system", "epoch", "bound", *floors, "of bound", *told), lines, TITLE)
