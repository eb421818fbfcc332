"""Write the tables of a run folder from its journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gnnbench.analysis.labels import labels
from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.comparison import adjust_p_values
from gnnbench.harness.reduce.convergence import convergence_rows, learning_rows
from gnnbench.harness.reduce.ratios import ratio_rows
from gnnbench.harness.reduce.roofline import roofline_rows
from gnnbench.schema import TABLES, CellRow, CurveRow, KernelRow, Record, SampleRow, StageRow
from gnnbench.schema.writer import write_csv
from gnnbench.statistics.noise import Calibration

if TYPE_CHECKING:
    from gnnbench.config.experiment import Experiment
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan
    from gnnbench.schema.reports import Profile

RowT = TypeVar("RowT", StageRow, KernelRow, CurveRow)
ALWAYS_WRITTEN = ("cells.csv", "metrics.csv", "samples.csv")


def write_tables(
    folder: Path,
    plan: Plan,
    journal: JournalState,
    experiment: Experiment,
    calibrations: Sequence[Calibration],
) -> list[CellRow]:
    """Write all tables and return the rows of ``cells.csv``.

    Empty tables are not written, except those of ``ALWAYS_WRITTEN``.
    """
    cells, metrics = cell_rows(plan, journal, experiment.measure, calibrations)
    metrics += learning_rows(plan, journal, experiment.accuracy)
    ratios = ratio_rows(plan, journal, experiment, calibrations)
    adjust_p_values(cells, [row.id for row in cells])
    adjust_p_values(ratios, [row.pair for row in ratios])
    tables: Mapping[str, Sequence[Record]] = {
        "cells.csv": cells,
        "metrics.csv": metrics,
        "samples.csv": sample_rows(journal),
        "ratios.csv": ratios,
        "stages.csv": _profile_rows(plan, journal, lambda profile: profile.stages),
        "kernels.csv": _profile_rows(plan, journal, lambda profile: profile.kernels),
        "curves.csv": _profile_rows(plan, journal, lambda profile: profile.curves),
        "roofline.csv": roofline_rows(plan, journal),
        "convergence.csv": convergence_rows(plan, journal),
    }
    for name, (_, columns) in TABLES.items():
        if tables[name] or name in ALWAYS_WRITTEN:
            write_csv(folder / name, columns, tables[name])
    return cells


def sample_rows(journal: JournalState) -> list[SampleRow]:
    """Rows of ``samples.csv`` in the order of their measurement."""
    return [replace(s, void=not journal.counts(s)) for s in journal.samples]


def _profile_rows(
    plan: Plan, journal: JournalState, table: Callable[[Profile], Sequence[RowT]]
) -> list[RowT]:
    """Rows of profiling runs, with the cell of each."""
    label_of = labels([asdict(c) for c in plan.cells]).of
    return [
        replace(row, id=cell.id, cell=label_of(asdict(cell)))
        for cell in plan.cells
        if cell.id in journal.profiles and cell.id not in journal.failures
        for row in table(journal.profiles[cell.id])
    ]
