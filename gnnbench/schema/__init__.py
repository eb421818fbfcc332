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
    "cells.csv": ("one row per cell, and per name under which it was asked for", CELLS),
    "metrics.csv": ("everything else that is known of a cell, one row per number", METRICS),
    "samples.csv": ("one row per epoch run", SAMPLES),
    "ratios.csv": ("one row per couple that the definition compares directly", RATIOS),
    "stages.csv": ("stages of sampling cells, by hop", STAGES),
    "kernels.csv": (
        "what a GPU runs, by name: of samples; of all with kernels=true",
        KERNELS,
    ),
    "curves.csv": ("hit ratios of caches of every size in a trace of an epoch apart", CURVES),
    "roofline.csv": ("kernels run by themselves, and the machine's ceilings over them", ROOFLINE),
    "convergence.csv": ("accuracy epoch by epoch, of every life", CONVERGENCE),
}
# Of a run of several machines, which has no cells.
ACROSS = {"machines.csv": ("one row per rank and epoch, several machines emulated", MACHINES)}

__all__ = [
    "ACROSS", "CELLS", "CONVERGENCE", "CURVES", "KERNELS", "MACHINES", "METRICS", "RATIOS",
    "ROOFLINE", "SAMPLES", "STAGES", "STAGE_NAMES", "STATUSES", "TABLES", "VERSION",
    "WORK_CLASSES", "CellRow", "Column", "ConvergenceRow", "CurveRow", "KernelRow", "MachineRow",
    "MetricRow", "RatioColumns", "RatioRow", "Record", "RooflineRow", "SampleRow", "StageRow",
    "column_names",
]  # fmt: skip
