"""The table of ranks with a partition each: what it cuts, how even it is, what is exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.table import HEADS
from gnnbench.analysis.table_layout import Part
from gnnbench.core.counters import (
    CUT_SHARE,
    EDGES_CUT,
    PART_IMBALANCE,
    PARTITION_TIME,
    REDUCE_BYTES,
    ROUNDS,
    SENT_BYTES,
)
from gnnbench.core.units import significant, time
from gnnbench.schema import MetricRow

Row = Mapping[str, Any]

TITLE = "Partitions: made once; edges between parts; largest part over the mean; rounds of a batch"
NOTE = (
    "bytes of an epoch are those that all ranks send to others, in MB; gradients: those given to"
    " all-reduces"
)
STAGES = ("sampler", "features")


def partition_table(rows: Sequence[Row], metrics: Sequence[MetricRow]) -> Part:
    """One line per measured cell that has a partition; no lines without one."""
    named, known, lines = labels(rows), Metrics(metrics), []
    axes = [HEADS.get(axis, axis) for axis in named.axes]
    for row in rows:
        cut = known.value(row["id"], "partition", EDGES_CUT)
        if cut is None or not row.get("batches"):
            continue
        line: dict[str, object] = {
            HEADS.get(axis, axis): text for axis, text in named.values(row).items()
        }
        line |= {"system": named.system(row)}
        line["made in"] = time(known.value(row["id"], "partition", PARTITION_TIME))
        line["edges cut"] = f"{cut:,.0f}"
        line["of all"] = f"{known.value(row['id'], 'partition', CUT_SHARE) or 0.0:.1%}"
        for what, measure in PART_IMBALANCE.items():
            line[what] = significant(known.value(row["id"], "partition", measure), 4)
        rounds = sum(known.value(row["id"], stage, ROUNDS) or 0.0 for stage in STAGES)
        line["rounds"] = significant(rounds / row["batches"])
        for stage, head in zip(STAGES, ("sampling sent", "features sent"), strict=True):
            line[head] = _megabytes(known.by_where(row["id"], stage, SENT_BYTES))
        line["gradients"] = _megabytes(known.by_where(row["id"], "schedule", REDUCE_BYTES))
        lines.append(line)
    heads = ["made in", "edges cut", "of all", *PART_IMBALANCE, "rounds"]
    heads += ["sampling sent", "features sent", "gradients"]
    told = [head for head in heads if any(line[head] for line in lines)]
    return Part((*axes, "system", *told), lines, TITLE, NOTE)


def _megabytes(by_rank: Mapping[str, float]) -> str:
    return f"{sum(by_rank.values()) / 1e6:.3g}" if by_rank else ""
