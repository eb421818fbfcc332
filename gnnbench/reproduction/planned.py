"""What a run that was stopped had still to do: cells that its definition has and its tables lack.

A run that came to its end has a row for every cell, measured or failed. One that was stopped has
rows of those that it got to; what else it was to measure is planned anew from its definition.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from gnnbench.analysis.labels import SHORTHAND, fits, paths_of
from gnnbench.config import grid
from gnnbench.config.experiment import Experiment
from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import UsageError
from gnnbench.harness import available, environment
from gnnbench.harness.available import Availability
from gnnbench.harness.plan import Own, Plan, make_plan
from gnnbench.schema import CELLS
from gnnbench.schema.reader import Run

Row = dict[str, Any]
PLANNED = "planned"  # the status of a cell that was not got to


def stopped(run: Run) -> bool:
    """Whether a run was ended before its end."""
    return "experiment" in run.record and run.record.get("finished") is False


def unmeasured(run: Run) -> list[Row]:
    """Rows of cells that a stopped run did not get to, with the columns that a plan knows.

    Raises ``UsageError`` where its definition is none of this version.
    """
    if not stopped(run):
        return []
    try:
        experiment = Experiment.model_validate(run.record["experiment"])
    except ValidationError:
        raise UsageError(
            f"'{run.path.name}' was stopped, and its definition is of another version: what it was"
            " to measure is not known; measure it again"
        ) from None
    plan = whole_plan(experiment)
    there = {cell.id: _row_of(cell, run, experiment) for cell in plan.cells}
    ids = {ident: row["id"] if row else ident for ident, row in there.items()}
    return [
        {**_planned(cell, plan, run, name), "reference_id": ids[plan.references[cell.id].id]}
        for cell in plan.cells
        if there[cell.id] is None
        for name in plan.names[cell.id]
    ]


def whole_plan(experiment: Experiment) -> Plan:
    """The plan of a resolved definition on a machine that has everything. Raises ``UsageError``."""
    cells = grid.expand(experiment, available.resolve, known=environment.known_paths)
    return make_plan(
        cells,
        experiment.reference,
        (),
        lambda cell: Availability(),
        lambda dataset: None,
        environment.stand_in,
        experiment.compare,
        Own(experiment.references, environment.variant),
    )


def beside(run: Run, a: Row, b: Row) -> bool:
    """Whether two cells of a run were to be measured beside one another."""
    if a["reference_id"] == b["id"] or b["reference_id"] == a["id"]:
        return True
    couples = run.record.get("experiment", {}).get("compare", [])
    return any(
        (fits(a, first) and fits(b, second)) or (fits(b, first) and fits(a, second))
        for first, second in couples
    )


def _row_of(cell: Cell, run: Run, experiment: Experiment) -> Row | None:
    """The row of a cell, whichever version of the suite wrote it: by what the definition sets."""
    own = f"{cell.system}."
    told = {axis.removeprefix(own) for axis in experiment.paths() if axis.startswith(own)}
    told |= experiment.systems.get(cell.system, {}).keys()
    told |= {path for axis, path in SHORTHAND.items() if {*experiment.axis(axis)} - {grid.DEFAULT}}
    recipe, axes = flat(cell.recipe), _axes(cell, run)
    for row in run.cells:
        known = paths_of(row)
        if row["id"] == cell.id or (
            row["system"] == cell.system
            and all(row[name] == value for name, value in axes.items())
            and all(recipe.get(path) == known.get(path) for path in told)
        ):
            return row
    return None


def _axes(cell: Cell, run: Run) -> Row:
    """What tells cells apart beside system and recipe, as columns of ``cells.csv``."""
    cores = run.record.get("machine", {}).get("cores_usable", 0)
    return {
        "dataset": cell.dataset,
        "until": cell.until,
        "model": cell.model,
        "device": cell.device,
        "batch_size": cell.batch_size,
        "fanouts": "/".join(map(str, cell.fanouts)),
        "hidden": cell.hidden if cell.trains else None,
        "learning_rate": cell.learning_rate if cell.trains else None,
        "threads": cell.threads or cores,
        "seed": cell.seed,
        "max_batches": cell.max_batches,
        "evaluate": cell.evaluate,
        "env": cell.env,
    }


def _planned(cell: Cell, plan: Plan, run: Run, name: str) -> Row:
    """A row of ``cells.csv`` as far as it is known before a cell has run."""
    return {
        **dict.fromkeys(column.name for column in CELLS),
        **_axes(cell, run),
        "id": cell.id,
        "experiment": cell.experiment,
        "system": name,
        "gpus": cell.gpus if cell.device == "cuda" else None,
        "recipe": json.dumps(cell.recipe, sort_keys=True),
        "reference": plan.reference_label(cell),
        "work_class": "",
        "status": PLANNED,
        "reason": "its run was stopped before measuring it",
    }
