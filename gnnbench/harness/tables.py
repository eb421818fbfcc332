"""The tables of a run folder, written from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnbench.harness.convergence import convergence_rows, learning_rows
from gnnbench.harness.ratios import ratio_rows
from gnnbench.harness.roofline import roofline_rows
from gnnbench.harness.rows import cell_rows, curve_rows, kernel_rows, sample_rows, stage_rows
from gnnbench.schema import TABLES
from gnnbench.schema.writer import write_csv
from gnnbench.statistics.noise import Calibration

if TYPE_CHECKING:
    from gnnbench.config.experiment import Experiment
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import Plan


def write_tables(
    folder: Path,
    plan: Plan,
    journal: JournalState,
    experiment: Experiment,
    calibrations: Sequence[Calibration],
) -> list[dict[str, Any]]:
    """Write all tables as they stand; returns the rows of ``cells.csv``.

    A table of which the run has nothing to tell is not written, but
    for the cells, their metrics and the samples.
    """
    cells, metrics = cell_rows(plan, journal, experiment.measure, calibrations)
    metrics += learning_rows(plan, journal, experiment.accuracy)
    found = {
        "cells.csv": cells,
        "metrics.csv": metrics,
        "samples.csv": sample_rows(journal),
        "ratios.csv": ratio_rows(plan, journal, experiment, calibrations),
        "stages.csv": stage_rows(plan, journal),
        "kernels.csv": kernel_rows(plan, journal),
        "curves.csv": curve_rows(plan, journal),
        "roofline.csv": roofline_rows(plan, journal),
        "convergence.csv": convergence_rows(plan, journal),
    }
    always = ("cells.csv", "metrics.csv", "samples.csv")
    for name, (_, columns) in TABLES.items():
        if found[name] or name in always:
            write_csv(folder / name, columns, found[name])
    return cells
