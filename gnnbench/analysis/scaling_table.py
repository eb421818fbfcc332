"""The table of a run whose systems train in several numbers of ranks: throughput and efficiency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.analysis import rank_series
from gnnbench.analysis.table_layout import Part
from gnnbench.core.units import significant, times

Row = Mapping[str, Any]

HEADS = ("scaling", "system", "ranks", "batch", "seeds/s", "over the fewest", "efficiency")
TITLE = "Ranks: seeds a second of the judged time"
NOTE = (
    "strong: ranks share one batch; weak: each has as many seeds, so that a batch grows with them."
    " efficiency: seeds a second and rank, over those of the fewest ranks in the series; times of"
    " other rounds than a ratio's, so no verdict. Ranks that share a machine's cores share its"
    " work: on one CPU none of them adds a core"
)


def scaling_table(rows: Sequence[Row], _: Sequence[Row]) -> Part:
    """A line for each number of ranks of a system that was measured at several."""
    lines = []
    for scaling, series in (
        (rank_series.STRONG, rank_series.strong(rows)), (rank_series.WEAK, rank_series.weak(rows)),
    ):  # fmt: skip
        for name, found in series.items():
            few = {ranks: row for ranks, row in sorted(found.items()) if row.get("judged_s")}
            if len(few) > 1:
                lines += [{"scaling": scaling, "system": name, **line} for line in _lines(few)]
    return Part(HEADS, lines, TITLE, NOTE)


def rate(row: Row) -> float:
    """Seeds a second."""
    return float(row["seeds"] / row["judged_s"])


def _lines(rows: dict[int, Row]) -> list[dict[str, str]]:
    fewest, first = next(iter(rows.items()))
    lines = []
    for ranks, row in rows.items():
        more = rate(row) / rate(first)
        lines.append(
            {
                "ranks": str(ranks) + " (?)" * bool(row.get("doubtful")),
                "batch": str(row["batch_size"]),
                "seeds/s": significant(rate(row)),
                "over the fewest": times(more) if row is not first else "",
                "efficiency": f"{more * fewest / ranks:.0%}",
            }
        )
    return lines
