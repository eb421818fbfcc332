"""A run's table once more: for a terminal, for a document (Markdown), for a spreadsheet (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from rich.table import Table

from gnnbench.results import inside_table, overlap_table, roofline_table, table
from gnnbench.results.labels import labels
from gnnbench.results.reader import Run

Row = dict[str, Any]

# Of all rows alike or not: so that the tables of several runs can be put together.
SHARED = ("dataset", "model", "device", "batch_size", "fanouts", "hidden")
# Plain numbers, times in seconds; ratios are of the reference's time over the row's own.
NUMBERS = (
    "judged", "judged_s", "ci_low_s", "ci_high_s", "sample_time_s", "memory_io_time_s",
    "compute_time_s", "epoch_wall_s", "reference", "reference_s", "ratio", "ratio_ci_low",
    "ratio_ci_high", "pairs", "work_class", "verdict", "doubtful", "reason",
)  # fmt: skip
RATIO = (
    "speed-up: the reference's time over the row's own, round by round in pairs of fresh processes,"
    " with its 95 % interval; it need not be the quotient of the times shown"
)


def tables(run: Run, different: bool, fits: Callable[[Table], bool]) -> list[Table]:
    """All tables of a run, in their narrow form where one does not fit."""
    found = table.tables(run.cells, run.metrics, different)
    if not all(fits(t) for t in found):
        found = table.tables(run.cells, run.metrics, different, narrow=True)
    overlap = overlap_table.overlap_table(run.cells, run.metrics)
    found += [overlap.table(gap=1)] if overlap.lines else []
    found += [inside_table.stages_table(run.stages).table(gap=1)] if run.stages else []
    found += [inside_table.kernels_table(run.kernels).table(gap=1)] if run.kernels else []
    return found + [part.table(gap=1) for part in roofline_table.roofline_tables(run.roofline)]


def remarks(run: Run, different: bool) -> list[str]:
    """What no table can say."""
    found = [n for n in run.record.get("notes") or [] if " runs with " in n]  # set for all rows
    found += [RATIO] * any(r.get("ratio") is not None for r in run.cells)
    return [*found, *table.remarks(run.cells, different), *roofline_table.remarks(run.roofline)]


def markdown(run: Run, different: bool = False) -> str:
    """Heading, tables and a list of what they cannot say."""
    lines = [f"{table.heading(run.cells)}:", ""]
    for part in table.parts(run.cells, run.metrics, different):
        lines += [*part.markdown(), ""]
    overlap = overlap_table.overlap_table(run.cells, run.metrics)
    if overlap.lines:
        lines += [f"{overlap.title}:", "", *overlap.markdown(), ""]
    told = [*table.ratio_lines(run.ratios, run.cells), *remarks(run, different)]
    return "\n".join([*lines, *(f"- {text}" for text in told)]).rstrip() + "\n"


def to_csv(run: Run) -> str:
    """One row per cell: graph and settings, the system, its status, and plain numbers."""
    named = labels(run.cells)
    shared = [n for n in SHARED if n not in named.axes and any(r.get(n) for r in run.cells)]
    kept = [n for n in NUMBERS if any(r.get(n) not in (None, "") for r in run.cells)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*shared, *named.axes, "system", "status", *kept])
    for row in run.cells:
        axes = [named.values(row).get(axis, "") for axis in named.axes]
        values = ["" if row.get(n) is None else row[n] for n in kept]
        told = [row.get(name) for name in shared]
        writer.writerow([*told, *axes, named.system(row), row["status"], *values])
    return out.getvalue()
