"""Typed records of everything that a run leaves on disk.

Each table has a record class whose fields are its columns. ``results/SCHEMA.md`` is printed from
here (``python -m gnnbench.analysis.schema_document``).
"""

from gnnbench.schema.cell_internals import (
    CONVERGENCE,
    CURVES,
    KERNELS,
    STAGE_NAMES,
    STAGES,
    ConvergenceRow,
    CurveRow,
    KernelRow,
    StageRow,
)
from gnnbench.schema.cells import CELLS, STATUSES, VERSION, WORK_CLASSES, CellRow, RatioColumns
from gnnbench.schema.column import Column, Record, column_names
from gnnbench.schema.machines import MACHINES, MachineRow
from gnnbench.schema.measured import (
    METRICS,
    RATIOS,
    SAMPLES,
    MetricRow,
    RatioRow,
    SampleRow,
)
from gnnbench.schema.roofline import ROOFLINE, RooflineRow

TABLES = {
    "cells.csv": ("one row per cell and name of the cell", CELLS),
    "metrics.csv": ("all other numbers of a cell, one row per number", METRICS),
    "samples.csv": ("one row per epoch run", SAMPLES),
    "ratios.csv": ("one row per pair of cells that the definition compares directly", RATIOS),
    "stages.csv": ("stages of sampling cells, by hop", STAGES),
    "kernels.csv": (
        "GPU kernels by name: of sampling cells, or of all cells with kernels=true",
        KERNELS,
    ),
    "curves.csv": ("hit ratios for every cache size, from the trace of a separate epoch", CURVES),
    "roofline.csv": ("kernels measured alone, and the machine's measured peaks", ROOFLINE),
    "convergence.csv": ("accuracy after each epoch, for each process", CONVERGENCE),
}
# A run of emulated machines has this table instead of cells.
ACROSS = {"machines.csv": ("one row per rank and epoch of emulated machines", MACHINES)}

__all__ = [
    "ACROSS", "CELLS", "CONVERGENCE", "CURVES", "KERNELS", "MACHINES", "METRICS", "RATIOS",
    "ROOFLINE", "SAMPLES", "STAGES", "STAGE_NAMES", "STATUSES", "TABLES", "VERSION",
    "WORK_CLASSES", "CellRow", "Column", "ConvergenceRow", "CurveRow", "KernelRow", "MachineRow",
    "MetricRow", "RatioColumns", "RatioRow", "Record", "RooflineRow", "SampleRow", "StageRow",
    "column_names",
]  # fmt: skip
