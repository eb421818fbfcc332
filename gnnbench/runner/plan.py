"""From cells to pairs: what is measured beside what, and what cannot run here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

from gnnbench.cell import Cell, flat
from gnnbench.grid import Grid
from gnnbench.results.labels import fits, parse_label
from gnnbench.runner.failures import Failure


@dataclass(frozen=True)
class Availability:
    """Why a system cannot run (None: it can) and which one may stand in for it."""

    failure: Failure | None = None
    stand_in: str = ""


@dataclass(frozen=True)
class Pair:
    """A system beside its reference; ``reference`` is None where it runs alone."""

    system: Cell
    reference: Cell | None = None
    direct: bool = False  # asked for by the definition, beside the pair with the reference

    @property
    def id(self) -> str:
        """Ids of both, joined by ``-``."""
        return f"{self.reference.id}-{self.system.id}" if self.reference else self.system.id


@dataclass
class Plan:
    """Everything a run will do. ``failures`` are the cells that cannot run, by cell id."""

    cells: list[Cell]
    pairs: list[Pair]
    references: dict[str, Cell] = field(default_factory=dict)  # cell id -> reference of its group
    failures: dict[str, Failure] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)  # cell id -> the missing system
    absent: set[str] = field(default_factory=set)  # datasets that cannot be had
    notes: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)  # cell id -> systems it is shown as

    def fits(self, cell: Cell, label: str) -> bool:
        """Whether a label names a cell, under any of its names."""
        values = asdict(cell)
        return any(fits({**values, "system": name}, label) for name in self.names[cell.id])


def make_plan(
    grid: Grid,
    reference: str,
    named: Collection[str],
    availability: Callable[[Cell], Availability],
    datasets: Callable[[str], Failure | None],
    stand_in: Callable[[Cell, str], Cell],
    compare: Collection[Sequence[str]] = (),
) -> Plan:
    """Pair every cell that can run with the reference cell of its group.

    ``reference`` and the couples of ``compare`` are labels (``gnnbench.results.labels``).
    ``named``: systems that the user named; no stand-in is added for them. ``stand_in`` makes the
    cell of another system in the place of one.
    """
    plan = Plan([], [], names={k: list(v) for k, v in grid.names.items()})
    for cell in grid.cells:
        reason = grid.unsupported.get(cell.id)
        state = Availability(Failure("unsupported", reason)) if reason else availability(cell)
        _add(plan, cell, state.failure)
        failure = state.failure
        if failure and state.stand_in and cell.system not in named:
            other = stand_in(cell, state.stand_in)
            if all(other.id != c.id for c in [*grid.cells, *plan.cells]):
                _add(plan, other, availability(other).failure)
                plan.stand_ins[other.id] = cell.system
    for cell in plan.cells:
        if (failure := datasets(cell.dataset)) is not None:
            plan.failures[cell.id] = failure
            plan.absent.add(cell.dataset)
    for group in _groups(plan, reference):
        _pair(plan, group, reference)
    for first, second in compare:
        _couple(plan, first, second)
    return plan


def _add(plan: Plan, cell: Cell, failure: Failure | None) -> None:
    plan.cells.append(cell)
    plan.names.setdefault(cell.id, [cell.system])
    if failure:
        plan.failures[cell.id] = failure


def _groups(plan: Plan, reference: str) -> list[list[Cell]]:
    """Cells that differ only in system and recipe, and have one pick.

    Cells whose pick the reference does not have join those of the first pick that it has.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        groups.setdefault(f"{_rest(cell)} {_pick(cell)}", []).append(cell)
    home: dict[str, str] = {}
    for key, group in groups.items():
        if any(plan.fits(c, reference) for c in group):
            home.setdefault(_rest(group[0]), key)
    joined: dict[str, list[Cell]] = {}
    for key, group in groups.items():
        own = any(plan.fits(c, reference) for c in group)
        joined.setdefault(key if own else home.get(_rest(group[0]), key), []).extend(group)
    return list(joined.values())


def _rest(cell: Cell) -> str:
    """What a cell is besides its system."""
    return replace(cell, system="", recipe={}, composed=True).id


def _pick(cell: Cell) -> str:
    """The sampler's pick, "" of a system that answers for itself."""
    return str(flat(cell.recipe).get("sampler.pick", ""))


def _pair(plan: Plan, group: list[Cell], reference: str) -> None:
    """The reference is the first cell that its label fits, else the group's first cell."""
    chosen = next((c for c in group if plan.fits(c, reference)), None)
    if chosen is None:
        chosen = next((c for c in group if c.id not in plan.failures), group[0])
        note = f"'{reference}' was not selected, so '{chosen.system}' is the reference"
        if len(group) > 1 and note not in plan.notes:
            plan.notes.append(note)
    for cell in group:
        plan.references[cell.id] = chosen
    able = [c for c in group if c.id not in plan.failures]
    others = [c for c in able if c is not chosen]
    beside = chosen if chosen in able else None
    if beside is None and others and len(group) > 1:
        note = f"the reference '{chosen.system}' cannot run, so the others have no ratio"
        if note not in plan.notes:
            plan.notes.append(note)
    plan.pairs += [Pair(c, beside) for c in others]
    if beside is not None and not others:
        plan.pairs.append(Pair(beside))


def _couple(plan: Plan, first: str, second: str) -> None:
    """Pair the cells that two labels name and that are alike in whatever neither label names.

    A cell whose pick the other system does not have goes beside all of that one's.
    """
    free = {key for label in (first, second) for key in parse_label(label)[1]}
    axes = {f.name for f in fields(Cell)} - {"system", "recipe", "composed"} - free
    found = False
    for a in [c for c in plan.cells if plan.fits(c, first)]:
        others = [
            c
            for c in plan.cells
            if plan.fits(c, second) and all(getattr(a, x) == getattr(c, x) for x in axes)
        ]
        for b in [c for c in others if _pick(c) == _pick(a)] or others:
            found = True
            known = [{p.system.id, p.reference.id} for p in plan.pairs if p.reference]
            if {a.id, b.id} not in known and not {a.id, b.id} & plan.failures.keys():
                plan.pairs.append(Pair(b, a, direct=True))
    if not found:
        plan.notes.append(f"'{first}' beside '{second}': no such cells were selected")
