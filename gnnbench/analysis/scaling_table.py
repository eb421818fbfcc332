"""Table of systems that train on several numbers of ranks: throughput and efficiency."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from gnnbench.analysis.labels import labels
from gnnbench.analysis.reliability import UNRELIABLE_MARK
from gnnbench.analysis.table_layout import TextTable
from gnnbench.core.units import significant, times
from gnnbench.schema import CellRow

Series = dict[str, dict[int, CellRow]]  # by label and number of ranks

SCHEDULE, RANKS, BATCH = "schedule", "ranks", "batch_size"
BATCHES, WHOLE = "batches", "whole"  # an update has a batch of each rank
# What is equal in a series, of the seeds of an update and the number of ranks.
SCALINGS: dict[str, Callable[[int, int], float]] = {
    "strong": lambda seeds, ranks: seeds, "weak": lambda seeds, ranks: seeds / ranks,
}  # fmt: skip
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
    for scaling, seeds_key in SCALINGS.items():
        for name, by_ranks in _series(rows, seeds_key).items():
            measured = {n: row for n, row in sorted(by_ranks.items()) if row.get("judged_s")}
            if len(measured) > 1:
                lines += [{"scaling": scaling, "system": name, **x} for x in _lines(measured)]
    return TextTable(HEADS, lines, TITLE, NOTE)


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
