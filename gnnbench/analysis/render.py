"""A run's table once more: for a terminal, for documents (Markdown, LaTeX), for programs (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from gnnbench.analysis import (
    overlap_table,
    partition_table,
    roofline_table,
    row_remarks,
    sample_tables,
    scaling_table,
    table,
)
from gnnbench.analysis.labels import labels
from gnnbench.analysis.startup import start_line
from gnnbench.analysis.table_layout import Part
from gnnbench.core import text as safe
from gnnbench.measure import contention
from gnnbench.schema.reader import Run

Row = Mapping[str, Any]

# Of all rows alike or not: so that the tables of several runs can be put together.
SHARED = ("dataset", "model", "device", "batch_size", "fanouts", "hidden")
# Plain numbers, times in seconds; ratios are of the reference's time over the row's own.
NUMBERS = (
    "judged", "judged_s", "ci_low_s", "ci_high_s", "sample_time_s", "memory_io_time_s",
    "compute_time_s", "epoch_wall_s", "batches", "epoch_batches", "reference", "reference_s",
    "ratio", "ratio_ci_low", "ratio_ci_high", "pairs", "work_class", "verdict", "doubtful",
    "reason",
)  # fmt: skip
RATIO = (
    "speed-up: the reference's time over the row's own, round by round in pairs of fresh processes,"
    " with its 95 % interval; it need not be the quotient of the times shown"
)


def tables(run: Run, different: bool, room: int) -> list[Part]:
    """All tables of a run, no wider than ``room``: in their narrow form where one does not fit."""
    found = table.parts(run.cells, run.metrics, different)
    if any(part.width() > room for part in found):
        found = table.parts(run.cells, run.metrics, different, narrow=True)
    found += beside(run)
    found += [sample_tables.stages_table(run.stages)] if run.stages else []
    found += [sample_tables.kernels_table(run.kernels)] if run.kernels else []
    return [cut for part in found for cut in part.fitted(room)]


def beside(run: Run) -> list[Part]:
    """Tables of what only some runs have, those of kernels last."""
    made = (
        overlap_table.overlap_table, partition_table.partition_table,
        scaling_table.scaling_table,
    )  # fmt: skip
    found = [part for make in made if (part := make(run.cells, run.metrics)).lines]
    return found + roofline_table.roofline_tables(run.roofline)


def set_for_all(run: Run) -> list[str]:
    """What a system's settings were in all of its rows, which do not tell."""
    return [n for n in run.record.get("notes") or [] if " runs with " in n]


def above(run: Run) -> list[str]:
    """What a reader must know before the table: a reference that was not the definition's choice,
    and other programs that used the cores."""
    notes = run.record.get("notes") or []
    return [n for n in notes if "was not selected, so" in n and "is the reference" in n] + busy(run)


def busy(run: Run) -> list[str]:
    """Which other programs used the cores while pairs were measured, in one line if any did."""
    found = run.record.get("busy") or {}
    seconds, used = found.get("seconds", 0.0), found.get("cpu_s", {})
    if not seconds:
        return []
    cores = found.get("foreign_cpu_s", 0.0) / (found.get("foreign_s") or 1.0)
    names = contention.named(used, seconds, cores)
    return [f"other programs used {cores:.1f} cores in the disturbed rounds: {names}"]


def remarks(run: Run, different: bool) -> list[str]:
    """What no table can say."""
    found = set_for_all(run)
    found += [RATIO] * any(r.get("ratio") is not None for r in run.cells)
    found += row_remarks.remarks(run.cells, different)
    return [*found, *roofline_table.remarks(run.roofline), *start_line(run.cells, run.metrics)]


def markdown(run: Run, different: bool = False) -> str:
    """Heading, tables and a list of what they cannot say."""
    lines = [f"{safe.markdown_line(table.heading(run.cells))}:", ""]
    lines += [line for text in above(run) for line in (f"{safe.markdown_line(text)}.", "")]
    for part in _documented(run, different):
        lines += [f"{safe.markdown_line(part.title)}:", ""] if part.title else []
        lines += [*part.markdown(), ""]
        lines += [f"{safe.markdown_line(part.note)}.", ""] if part.note else []
    told = map(safe.markdown_line, _told(run, different))
    return "\n".join([*lines, *(f"- {text}" for text in told)]).rstrip() + "\n"


def latex(run: Run, different: bool = False) -> str:
    """The same as a ``tabular`` for each table, to be put into any paper.

    Nothing but LaTeX itself is needed. What stands around the tables is a comment: a caption is to
    be written of it.
    """
    lines = [f"% {safe.printable(table.heading(run.cells))}"]
    for part in _documented(run, different):
        lines += [f"% {part.title}"] * bool(part.title)
        lines += part.latex()
        lines += [f"% {part.note}"] * bool(part.note)
    told = map(safe.printable, _told(run, different))
    return "\n".join([*lines, *(f"% {text}" for text in told)]) + "\n"


def _documented(run: Run, different: bool) -> list[Part]:
    return [*table.parts(run.cells, run.metrics, different), *beside(run)]


def _told(run: Run, different: bool) -> list[str]:
    return [*row_remarks.ratio_lines(run.ratios, run.cells), *remarks(run, different)]


def to_csv(run: Run) -> str:
    """One row per cell: graph and settings, the system, its status, and plain numbers."""
    named = labels(run.cells)
    shared = [n for n in SHARED if n not in named.axes and any(r.get(n) for r in run.cells)]
    kept = [n for n in NUMBERS if any(r.get(n) not in (None, "") for r in run.cells)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe.csv_cell, [*shared, *named.axes, "system", "status", *kept]))
    for row in run.cells:
        axes = [named.values(row).get(axis, "") for axis in named.axes]
        values = ["" if row.get(n) is None else row[n] for n in kept]
        told = [row.get(name) for name in shared]
        values = [*told, *axes, named.system(row), row["status"], *values]
        writer.writerow(map(safe.csv_cell, values))
    return out.getvalue()
