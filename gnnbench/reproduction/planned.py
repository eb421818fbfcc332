"""Cells that an interrupted run did not reach.

A finished run has a row for every cell, measured or failed. An interrupted one has rows of the
cells that it reached; the others are planned again from its definition.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic import ValidationError

from gnnbench.analysis.labels import SHORTHAND, fits, paths_of
from gnnbench.config import grid
from gnnbench.config.experiment import Experiment
from gnnbench.core import precision
from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import UsageError
from gnnbench.harness import available, environment
from gnnbench.harness.available import Availability
from gnnbench.harness.estimate import dataset_size
from gnnbench.harness.plan import Plan, ReferenceOverrides, make_plan
from gnnbench.schema import CellRow
from gnnbench.schema.reader import Run

INTERRUPTED = "its run was interrupted before measuring it"
PLANNED = "planned"  # status of a cell that was not reached
# Columns of ``cells.csv`` that are axes of a cell, without system and recipe.
AXES = (
    "dataset", "until", "model", "device", "batch_size", "fanouts", "hidden", "learning_rate",
    "dropout", "precision", "threads", "seed", "max_batches", "evaluate", "env",
)  # fmt: skip


def is_interrupted(run: Run) -> bool:
    """Whether a run ended before its last cell."""
    return "experiment" in run.record and run.record.get("finished") is False


def unmeasured_rows(run: Run) -> list[CellRow]:
    """Rows of the cells that an interrupted run did not reach, with the columns known beforehand.

    Raises ``UsageError`` where the run's definition is not of this version.
    """
    if not is_interrupted(run):
        return []
    try:
        experiment = Experiment.model_validate(run.record.definition)
    except ValidationError:
        raise UsageError(
            f"'{run.path.name}' was interrupted and its definition is of another version, so its"
            " remaining cells are unknown; run '{run.record.repeat_command}'"
        ) from None
    plan = whole_plan(experiment)
    rows = {cell.id: _row_of(cell, run, experiment) for cell in plan.cells}
    ids = {ident: row["id"] if row else ident for ident, row in rows.items()}
    return [
        replace(_planned_row(cell, plan, run, name), reference_id=ids[plan.references[cell.id].id])
        for cell in plan.cells
        if rows[cell.id] is None
        for name in plan.names[cell.id]
    ]


def whole_plan(experiment: Experiment) -> Plan:
    """The plan of a resolved definition as if nothing were missing on this machine.

    Raises ``UsageError``.
    """
    cells = grid.expand(experiment, available.resolve, known=environment.known_paths)
    return make_plan(
        cells,
        experiment.reference,
        (),
        lambda cell: Availability(),
        lambda dataset: None,
        environment.stand_in,
        experiment.compare,
        ReferenceOverrides(experiment.references, environment.variant),
    )


def were_paired(run: Run, a: CellRow, b: CellRow) -> bool:
    """Whether the definition pairs two cells: as cell and reference, or in ``compare``."""
    if a["reference_id"] == b["id"] or b["reference_id"] == a["id"]:
        return True
    compare = run.record.get("experiment", {}).get("compare", [])
    return any(
        (fits(a, first) and fits(b, second)) or (fits(b, first) and fits(a, second))
        for first, second in compare
    )


def _row_of(cell: Cell, run: Run, experiment: Experiment) -> CellRow | None:
    """The row of a cell.

    Another version of the suite may have given it another id, so everything that the definition
    sets is compared.
    """
    prefix = f"{cell.system}."
    paths = {axis.removeprefix(prefix) for axis in experiment.paths() if axis.startswith(prefix)}
    paths |= experiment.systems.get(cell.system, {}).keys()
    paths |= {path for axis, path in SHORTHAND.items() if {*experiment.axis(axis)} - {grid.DEFAULT}}
    recipe, axes = flat(cell.recipe), _axes(cell, run)
    for row in run.cells:
        known = paths_of(row)
        if row["id"] == cell.id or (
            row["system"] == cell.system
            and all(row[name] == axes[name] for name in AXES)
            and all(recipe.get(path) == known.get(path) for path in paths)
        ):
            return row
    return None


def _axes(cell: Cell, run: Run) -> CellRow:
    """A row with the axes of a cell (``AXES``) alone."""
    return CellRow(
        dataset=cell.dataset,
        until=cell.until,
        model=cell.model,
        device=cell.device,
        batch_size=cell.batch_size,
        fanouts="/".join(map(str, cell.fanouts)),
        hidden=cell.hidden if cell.trains else None,
        learning_rate=cell.learning_rate if cell.trains else None,
        dropout=cell.dropout or None,
        precision=precision.named(cell.precision),
        threads=cell.threads or run.record.machine.cores_usable or 0,
        seed=cell.seed,
        max_batches=cell.max_batches,
        evaluate=cell.evaluate,
        env=cell.env,
    )


def _planned_row(cell: Cell, plan: Plan, run: Run, name: str) -> CellRow:
    """The columns of ``cells.csv`` that are known before a cell has run."""
    size = dataset_size(cell.dataset)
    return replace(
        _axes(cell, run),
        nodes=size.nodes if size else None,
        feature_dim=size.width if size else None,
        id=cell.id,
        experiment=cell.experiment,
        system=name,
        gpus=cell.gpus if cell.device == "cuda" else None,
        recipe=json.dumps(cell.recipe, sort_keys=True),
        reference=plan.reference_label(cell),
        status=PLANNED,
        reason=INTERRUPTED,
    )
