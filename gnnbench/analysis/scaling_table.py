"""Table of systems that train on several numbers of ranks: throughput and efficiency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnnbench.analysis import rank_series
from gnnbench.analysis.reliability import UNRELIABLE_MARK
from gnnbench.analysis.table_layout import TextTable
from gnnbench.core.units import significant, times
from gnnbench.schema import CellRow

HEADS = ("scaling", "system", "ranks", "batch", "seeds/s", "over the fewest", "efficiency")
TITLE = "Ranks: seeds per second of the primary metric"
NOTE = (
    "strong scaling: all ranks share the seeds of an update; weak scaling: these grow with the"
    " number of ranks. efficiency: seeds per second and rank / the same with the fewest ranks. No"
    " verdict, because these times were not measured in alternating runs. Ranks on one CPU share"
    " its cores"
)


def scaling_table(rows: Sequence[CellRow]) -> TextTable:
    """One line for each number of ranks of a system that was measured with several."""
    lines = []
    for scaling, series in (
        (rank_series.STRONG, rank_series.strong(rows)), (rank_series.WEAK, rank_series.weak(rows)),
    ):  # fmt: skip
        for name, by_ranks in series.items():
            measured = {n: row for n, row in sorted(by_ranks.items()) if row.get("judged_s")}
            if len(measured) > 1:
                lines += [{"scaling": scaling, "system": name, **x} for x in _lines(measured)]
    return TextTable(HEADS, lines, TITLE, NOTE)


def seeds_per_second(row: CellRow) -> float:
    """Seeds of an epoch / its primary metric."""
    return float(row["seeds"] / row["judged_s"])


def _lines(rows: Mapping[int, CellRow]) -> list[dict[str, str]]:
    fewest, first = next(iter(rows.items()))
    lines = []
    for ranks, row in rows.items():
        speedup = seeds_per_second(row) / seeds_per_second(first)
        lines.append(
            {
                "ranks": str(ranks) + f" {UNRELIABLE_MARK}" * bool(row.get("doubtful")),
                "batch": str(row["batch_size"]),
                "seeds/s": significant(seeds_per_second(row)),
                "over the fewest": times(speedup) if row is not first else "",
                "efficiency": f"{speedup * fewest / ranks:.0%}",
            }
        )
    return lines
