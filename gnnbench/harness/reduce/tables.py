"""Write the tables of a run folder from its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.comparison import adjust_p_values
from gnnbench.harness.reduce.convergence import convergence_rows, learning_rows
from gnnbench.harness.reduce.profiles import curve_rows, kernel_rows, sample_rows, stage_rows
from gnnbench.harness.reduce.ratios import ratio_rows
from gnnbench.harness.reduce.roofline import roofline_rows
from gnnbench.schema import TABLES, CellRow, Record
from gnnbench.schema.writer import write_csv
from gnnbench.statistics.noise import Calibration

if TYPE_CHECKING:
    from gnnbench.config.experiment import Experiment
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan

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
        "stages.csv": stage_rows(plan, journal),
        "kernels.csv": kernel_rows(plan, journal),
        "curves.csv": curve_rows(plan, journal),
        "roofline.csv": roofline_rows(plan, journal),
        "convergence.csv": convergence_rows(plan, journal),
    }
    for name, (_, columns) in TABLES.items():
        if tables[name] or name in ALWAYS_WRITTEN:
            write_csv(folder / name, columns, tables[name])
    return cells
