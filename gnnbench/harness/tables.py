"""The tables of a run folder, written from its ledger."""

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
    from gnnbench.harness.journal import Ledger
    from gnnbench.harness.plan import Plan


def write_tables(
    folder: Path,
    plan: Plan,
    ledger: Ledger,
    experiment: Experiment,
    calibrations: Sequence[Calibration],
) -> list[dict[str, Any]]:
    """Write all tables as they stand; returns the rows of ``cells.csv``.

    A table of which the run has nothing to tell is not written, but
    for the cells, their metrics and the samples.
    """
    cells, metrics = cell_rows(plan, ledger, experiment.measure, calibrations)
    metrics += learning_rows(plan, ledger, experiment.accuracy)
    found = {
        "cells.csv": cells,
        "metrics.csv": metrics,
        "samples.csv": sample_rows(ledger),
        "ratios.csv": ratio_rows(plan, ledger, experiment, calibrations),
        "stages.csv": stage_rows(plan, ledger),
        "kernels.csv": kernel_rows(plan, ledger),
        "curves.csv": curve_rows(plan, ledger),
        "roofline.csv": roofline_rows(plan, ledger),
        "convergence.csv": convergence_rows(plan, ledger),
    }
    always = ("cells.csv", "metrics.csv", "samples.csv")
    for name, (_, columns) in TABLES.items():
        if found[name] or name in always:
            write_csv(folder / name, columns, found[name])
    return cells
