"""From cells to pairs: which cells are compared, and which cannot run here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import fits, parse_label
from gnnbench.config.grid import Grid
from gnnbench.core.cell import Cell, flat
from gnnbench.core.option import plain_text
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure
from gnnbench.schema.run_json import SweepPointJson

ALONE = "none"  # in a reference's place: only couples are compared, other cells run alone


@dataclass(frozen=True)
class CellPair:
    """A system and its reference; ``reference`` is None if the system runs alone."""

    system: Cell
    reference: Cell | None = None
    direct: bool = False  # requested by the definition, next to the pair with the reference

    @property
    def id(self) -> str:
        """Ids of both, joined by ``-``."""
        return f"{self.reference.id}-{self.system.id}" if self.reference else self.system.id


@dataclass
class Plan:
    """The work of a run. ``failures`` are the cells that cannot run, by cell id."""

    cells: list[Cell]
    pairs: list[CellPair]
    references: dict[str, Cell] = field(default_factory=dict)  # cell id -> reference of its group
    failures: dict[str, Failure] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)  # cell id -> the missing system
    absent: set[str] = field(default_factory=set)  # datasets that cannot be had
    notes: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)  # cell id -> systems it is shown as
    couples: list[tuple[str, str]] = field(default_factory=list)  # added comparisons
    sweeps: dict[str, list[SweepPointJson]] = field(default_factory=dict)  # as the grid's
    labels: dict[str, str] = field(
        default_factory=dict
    )  # cell id -> label of a reference of its own
    added: dict[str, frozenset[str]] = field(
        default_factory=dict
    )  # id of a reference that the grid lacked -> what sets it apart from the group's

    def fits(self, cell: Cell, label: str) -> bool:
        """Whether a label names a cell, under any of its names.

        A cell that the user did not select must be named by its distinguishing settings.
        """
        system, values = parse_label(label)
        if system not in self.names[cell.id]:
            return False
        if not self.added.get(cell.id, frozenset()) <= values.keys():
            return False
        return fits({**vars(cell), "system": system}, label)

    def reference_label(self, cell: Cell) -> str:
        """Return the label of a cell's reference."""
        return self.labels.get(cell.id) or self.references[cell.id].system


@dataclass(frozen=True)
class ReferenceOverrides:
    """References that systems have of their own: system -> label.

    ``variant`` makes the cell that a label names out of the group's reference.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    variant: Callable[[Cell, str], tuple[Cell, Failure | None]] = lambda cell, label: (cell, None)


def make_plan(
    grid: Grid,
    reference: str,
    named: Collection[str],
    availability: Callable[[Cell], Availability],
    datasets: Callable[[str], Failure | None],
    stand_in: Callable[[Cell, str], Cell],
    compare: Collection[Sequence[str]] = (),
    own: ReferenceOverrides = ReferenceOverrides(),
    elsewhere: Callable[[Plan], None] = lambda plan: None,
) -> Plan:
    """Pair every runnable cell with the reference cell of its group, or with its ``own`` reference.

    Without a reference a cell is measured alone, unless it is in a couple of ``compare``.
    A system's own reference is added if the grid lacks it. The system is then measured with the
    group's reference too, and both references with each other (``Plan.couples``). ``reference`` and
    the couples of ``compare`` are labels.
    """
    plan = Plan([], [], names={k: list(v) for k, v in grid.names.items()}, sweeps=grid.sweeps)
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
        _look_for_data(plan, cell, datasets)
    for group in _groups(plan, reference, named):
        added = _add_own(plan, group, reference, own, compare, availability)
        for cell in added:
            _look_for_data(plan, cell, datasets)
        _pair(plan, [*group, *added], reference)
    elsewhere(plan)
    for first, second in [*compare, *plan.couples]:
        _couple(plan, first, second)
    if reference == ALONE:
        compared = {c.id for p in plan.pairs if p.reference for c in (p.system, p.reference)}
        plan.pairs = [p for p in plan.pairs if p.reference or p.system.id not in compared]
    fitting = [any(plan.fits(c, r) for c in plan.cells) for r in (reference, reference.split()[0])]
    if fitting == [False, True] and all(p.reference is None for p in plan.pairs):
        plan.notes.append(f"'{reference}' was not selected, so nothing is compared")
    return plan


def _look_for_data(plan: Plan, cell: Cell, datasets: Callable[[str], Failure | None]) -> None:
    if (failure := datasets(cell.dataset)) is not None:
        plan.failures[cell.id] = failure
        plan.absent.add(cell.dataset)


def _add_own(
    plan: Plan,
    group: list[Cell],
    reference: str,
    own: ReferenceOverrides,
    asked: Collection[Sequence[str]],
    availability: Callable[[Cell], Availability],
) -> list[Cell]:
    """Return the own references of the group's cells, and add those that the plan lacks.

    None without the group's reference, because what the user left out is not added again, and none
    for a cell that cannot run.
    """
    chosen = next((c for c in group if plan.fits(c, reference)), None)
    added: list[Cell] = []
    for cell in group:
        label = next((own.labels[n] for n in plan.names[cell.id] if n in own.labels), "")
        idle = cell.id in plan.failures
        if chosen is None or not label or idle or plan.fits(cell, label):
            continue
        if plan.fits(chosen, label):  # the group's serves: nothing is to be made or added
            continue
        other, failure = own.variant(chosen, label)
        if all(other.id != c.id for c in plan.cells):
            # Next to the cell that it is a variant of.
            _add(plan, other, failure or availability(other).failure, plan.cells.index(chosen) + 1)
            plan.added[other.id] = frozenset(parse_label(label)[1])
            added.append(other)
        plan.references[cell.id], plan.labels[cell.id] = other, label
        first, second = _apart(chosen, reference, other, label)
        for couple in ((first, cell.system), (first, second)):
            if couple not in plan.couples and list(couple) not in asked:
                plan.couples.append(couple)
    return added


def _apart(chosen: Cell, reference: str, other: Cell, label: str) -> tuple[str, str]:
    """Return labels that fit only one of both references: all settings of either label, for
    both.
    """
    labels = []
    for cell, own, counterpart in ((chosen, reference, label), (other, label, reference)):
        settings = parse_label(own)[1]
        known = flat(cell.recipe)
        more = [k for k in parse_label(counterpart)[1] if k in known and k not in settings]
        labels.append(" ".join([own, *(f"{k}={plain_text(known[k])}" for k in more)]))
    return labels[0], labels[1]


def _add(plan: Plan, cell: Cell, failure: Failure | None, at: int | None = None) -> None:
    plan.cells.insert(len(plan.cells) if at is None else at, cell)
    plan.names.setdefault(cell.id, [cell.system])
    if failure:
        plan.failures[cell.id] = failure


def _groups(plan: Plan, reference: str, named: Collection[str] = ()) -> list[list[Cell]]:
    """Group cells that differ only in system and recipe and have the same sampling method.

    Cells whose method the reference lacks join those of its first method. If the user ``named``
    systems without the reference, the first system that can run takes its place.
    """
    groups = group_by(plan.cells, lambda cell: f"{rest(cell)} {_pick(cell)}")
    own = {key for key, group in groups.items() if any(plan.fits(c, reference) for c in group)}
    with_reference = {rest(groups[key][0]) for key in own}
    if named and reference != ALONE:
        first: dict[str, str] = {}
        for cell in sorted(plan.cells, key=lambda c: c.id in plan.failures):
            first.setdefault(rest(cell), cell.system)
        own |= {
            key
            for key, group in groups.items()
            if rest(group[0]) not in with_reference
            and any(c.system == first[rest(c)] for c in group)
        }
    home: dict[str, str] = {}
    for key in groups:
        if key in own:
            home.setdefault(rest(groups[key][0]), key)
    joined: dict[str, list[Cell]] = {}
    for key, group in groups.items():
        joined.setdefault(key if key in own else home.get(rest(group[0]), key), []).extend(group)
    return list(joined.values())


def rest(cell: Cell) -> str:
    """Return a cell's identity without its system."""
    return replace(cell, system="", recipe={}, composed=True).id


def _pick(cell: Cell) -> str:
    """Return the sampler's method; "" for a system without a sampler stage."""
    return str(flat(cell.recipe).get("sampler.pick", ""))


def _pair(plan: Plan, group: list[Cell], reference: str) -> None:
    """Pair with the first cell that the reference's label fits, else with the group's first
    cell.
    """
    if reference == ALONE:
        for cell in group:
            plan.references.setdefault(cell.id, cell)
        plan.pairs += [CellPair(c) for c in group if c.id not in plan.failures]
        return
    chosen = next((c for c in group if plan.fits(c, reference)), None)
    if chosen is None:
        chosen = next((c for c in group if c.id not in plan.failures), group[0])
        note = (
            f"'{reference}' was not selected, so '{chosen.system}', the first that can run, is the"
            " reference; choose another with -o reference=NAME"
        )
        if len(group) > 1 and note not in plan.notes:
            plan.notes.append(note)
    for cell in group:
        plan.references.setdefault(cell.id, chosen)
    able = [c for c in group if c.id not in plan.failures]
    others = [c for c in able if c is not chosen]
    # References are compared first: their rows are complete before the others start.
    used = {plan.references[c.id].id for c in others}
    others.sort(key=lambda c: c.id not in used)
    for cell in others:
        compared = plan.references[cell.id]
        runs = compared.id not in plan.failures
        if not runs and len(group) > 1:
            label = plan.reference_label(cell)
            note = f"the reference '{label}' cannot run, so the others have no ratio"
            if note not in plan.notes:
                plan.notes.append(note)
        plan.pairs.append(CellPair(cell, compared if runs else None))
    if chosen in able and not others:
        plan.pairs.append(CellPair(chosen))


def _couple(plan: Plan, first: str, second: str) -> None:
    """Pair the cells that two labels name and that agree in all settings that neither label names.

    A cell whose sampling method the other system lacks is paired with all cells of that system.
    """
    free = {key for label in (first, second) for key in parse_label(label)[1]}
    axes = {f.name for f in fields(Cell)} - {"system", "recipe", "composed"} - free
    matched = False
    seconds = [c for c in plan.cells if plan.fits(c, second)]
    for a in [c for c in plan.cells if plan.fits(c, first)]:
        others = [c for c in seconds if all(getattr(a, x) == getattr(c, x) for x in axes)]
        for b in [c for c in others if _pick(c) == _pick(a)] or others:
            matched = True
            known = [{p.system.id, p.reference.id} for p in plan.pairs if p.reference]
            if {a.id, b.id} not in known and not {a.id, b.id} & plan.failures.keys():
                plan.pairs.append(CellPair(b, a, direct=True))
    if not matched:
        plan.notes.append(f"'{first}' compared with '{second}': no such cells were selected")
