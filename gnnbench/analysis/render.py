"""Show a run: tables for a terminal, documents in Markdown and LaTeX, CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from gnnbench.analysis import (
    metric_tables,
    roofline_table,
    row_remarks,
    sample_tables,
    scaling_table,
    table,
)
from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.table_layout import TextTable
from gnnbench.core import text as safe
from gnnbench.core.units import seconds
from gnnbench.measure import contention
from gnnbench.schema import CellRow, MetricRow
from gnnbench.schema.reader import Run

# Columns that CSV output always has, so that tables of several runs can be concatenated.
SHARED = ("dataset", "model", "device", "batch_size", "fanouts", "hidden")
# Plain numbers; times in seconds, ratios are reference's time / this time.
NUMBERS = (
    "judged", "judged_s", "ci_low_s", "ci_high_s", "sample_time_s", "memory_io_time_s",
    "compute_time_s", "epoch_wall_s", "batches", "epoch_batches", "reference", "reference_s",
    "ratio", "ratio_ci_low", "ratio_ci_high", "pairs", "work_class", "verdict", "doubtful",
    "reason",
)  # fmt: skip
START_UP = "from process start to the gate, without a framework's import and locking memory"
RATIO = (
    "speed-up = reference time / this time, measured in alternating runs [95 % interval]; it can"
    " differ from the quotient of the times in the table"
)


def tables(run: Run, different: bool, room: int) -> list[TextTable]:
    """All tables of a run, each at most ``room`` characters wide."""
    main = table.main_tables(run.cells, run.metrics, different)
    if any(part.width() > room for part in main):
        main = table.main_tables(run.cells, run.metrics, different, narrow=True)
    every = [*main, *additional_tables(run)]
    every += [sample_tables.stages_table(run.stages)] if run.stages else []
    every += [sample_tables.kernels_table(run.kernels)] if run.kernels else []
    return [part for whole in every for part in whole.fitted(room)]


def additional_tables(run: Run) -> list[TextTable]:
    """Tables that only some runs have: overlap, partitions, ranks, roofline."""
    parts = [
        metric_tables.OVERLAP.table(run.cells, run.metrics),
        metric_tables.PARTITIONS.table(run.cells, run.metrics),
        scaling_table.scaling_table(run.cells),
    ]
    return [part for part in parts if part.lines] + roofline_table.roofline_tables(run.roofline)


def common_settings(run: Run) -> list[str]:
    """Settings of systems that all rows share, so that no label shows them."""
    return [n for n in run.record.get("notes") or [] if " runs with " in n]


def warnings(run: Run) -> list[str]:
    """Lines to print before the tables: an added reference, and other programs on the cores."""
    notes = run.record.get("notes") or []
    references = [n for n in notes if "was not selected, so" in n and "is the reference" in n]
    return references + busy(run)


def busy(run: Run) -> list[str]:
    """One line that names other programs which used the cores during measurements, if any did."""
    load = run.record.busy
    if load is None or not load.seconds:
        return []
    cores = load.foreign_cpu_s / (load.foreign_s or 1.0)
    names = contention.named(load.cpu_s, load.seconds, cores)
    return [f"other programs used {cores:.1f} cores in the disturbed rounds: {names}"]


def remarks(run: Run, different: bool) -> list[str]:
    """Lines to print below the tables."""
    has_ratio = any(r.get("ratio") is not None for r in run.cells)
    return [
        *common_settings(run),
        *([RATIO] if has_ratio else []),
        *row_remarks.remarks(run.cells, different),
        *roofline_table.remarks(run.roofline),
        *startup_line(run.cells, run.metrics),
    ]


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
    return [f"start-up: {text}, {START_UP}"]


def markdown(run: Run, different: bool = False) -> str:
    """Heading, tables and a list of remarks."""
    lines = [f"{safe.markdown_line(table.heading(run.cells))}:", ""]
    lines += [line for text in warnings(run) for line in (f"{safe.markdown_line(text)}.", "")]
    for part in _document_tables(run, different):
        lines += [f"{safe.markdown_line(part.title)}:", ""] if part.title else []
        lines += [*part.markdown(), ""]
        lines += [f"{safe.markdown_line(part.note)}.", ""] if part.note else []
    items = map(safe.markdown_line, _document_remarks(run, different))
    return "\n".join([*lines, *(f"- {text}" for text in items)]).rstrip() + "\n"


def latex(run: Run, different: bool = False) -> str:
    """A ``tabular`` for each table; titles, notes and remarks are comments. Needs no package."""
    lines = [f"% {safe.printable(table.heading(run.cells))}"]
    for part in _document_tables(run, different):
        lines += [f"% {part.title}"] * bool(part.title)
        lines += part.latex()
        lines += [f"% {part.note}"] * bool(part.note)
    comments = map(safe.printable, _document_remarks(run, different))
    return "\n".join([*lines, *(f"% {text}" for text in comments)]) + "\n"


def _document_tables(run: Run, different: bool) -> list[TextTable]:
    return [*table.main_tables(run.cells, run.metrics, different), *additional_tables(run)]


def _document_remarks(run: Run, different: bool) -> list[str]:
    return [*row_remarks.ratio_lines(run.ratios, run.cells), *remarks(run, different)]


def to_csv(run: Run) -> str:
    """One row per cell: graph and settings, system, status, and plain numbers."""
    named = labels(run.cells)
    shared = [n for n in SHARED if n not in named.axes and any(r.get(n) for r in run.cells)]
    numbers = [n for n in NUMBERS if any(r.get(n) not in (None, "") for r in run.cells)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe.csv_cell, [*shared, *named.axes, "system", "status", *numbers]))
    for row in run.cells:
        fields = [row.get(name) for name in shared]
        fields += [named.values(row).get(axis, "") for axis in named.axes]
        fields += [named.system(row), row["status"]]
        fields += ["" if row.get(n) is None else row[n] for n in numbers]
        writer.writerow(map(safe.csv_cell, fields))
    return out.getvalue()
