"""Pairs of the same system in two Python environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from gnnbench.analysis.labels import labels
from gnnbench.config.grid import Grid
from gnnbench.core.cell import Cell
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import CellPair, Plan

if TYPE_CHECKING:
    State = Callable[[Cell], Availability]


def add_environments(
    plan: Plan, here: Grid, there: Mapping[str, tuple[Grid, State]], reference: str
) -> None:
    """Add the cells of other environments to the plan of this one's.

    ``there`` has by environment the grid of the same definition and what can run. Every system but
    the ``reference`` is run in all of them, the reference where it is all that was selected. Cells
    of one combination are a comparison each: the one in this environment, or where it cannot run
    the first that can, is the reference of the others (``Plan.references``), and a couple with
    each (``Plan.couples``). A stand-in has no place in another environment.
    """
    if not there:
        return
    known = {c.id: c for c in here.cells}
    chosen = [c for c in here.cells if not plan.fits(c, reference)] or here.cells
    rows: dict[str, list[Cell]] = {c.id: [c] for c in chosen}
    for grid, state in there.values():
        cells = {c.id: c for c in grid.cells}
        for own, other in zip(here.asked, grid.asked, strict=True):
            if own not in rows or cells[other] in rows[own]:
                continue
            rows[own].append(cells[other])
            if other in plan.names:  # another combination came to the same there
                continue
            _add(plan, known[own], cells[other], grid, state)
    for cells_of in rows.values():
        _pair(plan, cells_of)
    _couple(plan)


def _add(plan: Plan, own: Cell, cell: Cell, grid: Grid, state: State) -> None:
    """Add a cell after those of the same combination."""
    at = plan.cells.index(own) + 1
    while at < len(plan.cells) and plan.cells[at].env:
        at += 1
    plan.cells.insert(at, cell)
    plan.names[cell.id] = list(grid.names[cell.id])
    lost = plan.failures.get(own.id)
    if reason := grid.unsupported.get(cell.id):
        plan.failures[cell.id] = Failure("unsupported", reason)
    elif lost is not None and cell.dataset in plan.absent:
        plan.failures[cell.id] = lost
    elif (failure := state(cell).failure) is not None:
        plan.failures[cell.id] = failure


def _pair(plan: Plan, cells: list[Cell]) -> None:
    """Pair each runnable cell with the first runnable one; its row belongs to its first pair."""
    able = [c for c in cells if c.id not in plan.failures]
    first = able[0] if able else cells[0]
    for cell in cells:
        if cell.env:
            plan.references.setdefault(cell.id, first)
    for cell in able[1:]:
        plan.pairs.append(CellPair(cell, first, direct=plan.references[cell.id] is not first))
    if first.env and able == [first]:
        plan.pairs.append(CellPair(first))
    if len(able) > 1 and not first.env:  # it is measured with them
        plan.pairs = [p for p in plan.pairs if p != CellPair(first)]


def _couple(plan: Plan) -> None:
    """Return the labels of the compared cells and their references: the settings that differ in
    this run.
    """
    named = labels([asdict(c) for c in plan.cells])

    def label(cell: Cell) -> str:
        return named.system({**asdict(cell), "composed": True})

    for pair in plan.pairs:
        if pair.system.env and pair.reference is not None:
            couple = (label(pair.system), label(pair.reference))
            if couple not in plan.couples:
                plan.couples.append(couple)
    for cell in plan.cells:
        if cell.env:
            plan.labels[cell.id] = label(plan.references[cell.id])
