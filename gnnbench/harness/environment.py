"""Queries of the plan about this machine: systems, their options, datasets, models.

Questions about plug-ins are answered by another process (``plugin_process``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, replace
from functools import lru_cache

from gnnbench.analysis.labels import parse_label
from gnnbench.core import names, registry
from gnnbench.core.cell import Cell, Until, flat
from gnnbench.core.errors import DataError, HostMemoryError, UsageError
from gnnbench.harness import available
from gnnbench.harness.available import Availability, CellFacts, SystemFacts
from gnnbench.harness.failures import Failure
from gnnbench.harness.plugin_process import ask
from gnnbench.models.kinds import MODELS
from gnnbench.systems.runtime.find import Resolved


def resolve(name: str, given: Mapping[str, object], device: str, until: Until) -> Resolved:
    """Return the resolved settings of a system in a cell. Raises ``UsageError``."""
    if registry.has_plugin(name, given):
        return ask(
            Resolved, "resolve", name=name, given=dict(given), device=device, until=until.word
        )
    return available.resolve(name, given, device, until)


def state(cell: Cell) -> Availability:
    """Return whether a cell can run on this machine."""
    if registry.has_plugin(cell.system, cell.recipe):
        return ask(Availability, "state", cell=asdict(cell))
    return available.state(cell)


def facts(name: str) -> SystemFacts:
    """Return facts of a system."""
    if registry.has_plugin(name, {}):
        return ask(SystemFacts, "facts", name=name)
    return available.facts(name)


def cell_facts(cell: Cell) -> CellFacts:
    """Return facts of a cell's stages."""
    if registry.has_plugin(cell.system, cell.recipe):
        answer = ask(CellFacts, "cell_facts", cell=asdict(cell))
        return replace(answer, foresees=0)  # only gnnbench's own stages may know an epoch
    return available.cell_facts(cell)


def known_paths(name: str, given: Mapping[str, object]) -> Mapping[str, Collection[str]]:
    """Return the words among the legal values of a system's options, by path.

    ``given`` may name other stages.

    Raises ``UsageError`` for an unknown system, ``MissingError`` if no environment can answer.
    """
    check_names([name], [])
    if registry.has_plugin(name, given):
        return ask(dict[str, list[str]], "options", name=name, given=dict(given))
    return available.options(name, given)


def stand_in(cell: Cell, name: str) -> Cell:
    """Return the cell of another system, as registered, that replaces a cell."""
    resolved = resolve(name, {}, cell.device, cell.goes_until)
    return replace(cell, system=name, recipe=resolved.recipe, composed=resolved.composed)


def variant(cell: Cell, label: str) -> tuple[Cell, Failure | None]:
    """Return the cell that a label names, and why it cannot run as requested.

    Settings that the label leaves out are those of ``cell`` if it has the same system, else those
    registered. Raises ``UsageError`` for a label that sets anything but the recipe.
    """
    name, settings = parse_label(label)
    own = {f.name for f in fields(Cell)}
    if outside := next((k for k in settings if k in own), ""):
        raise UsageError(
            f"the reference '{label}' sets '{outside}'; a system's own reference may differ in its"
            " recipe alone"
        )
    given: dict[str, object] = {}
    if name == cell.system and cell.composed:
        given = flat(cell.recipe)
        other = tuple(f"{k}." for k, v in settings.items() if v != given.get(k))
        given = {k: v for k, v in given.items() if not k.startswith(other)}
    resolved = resolve(name, {**given, **settings}, cell.device, cell.goes_until)
    made = replace(cell, system=name, recipe=resolved.recipe, composed=resolved.composed)
    return made, Failure("unsupported", resolved.unsupported) if resolved.unsupported else None


@lru_cache(maxsize=64)
def dataset_state(name: str) -> Failure | None:
    """Return why a dataset is unavailable: it is missing, or a tool that prepares it is missing.

    Raises ``UsageError`` for an unknown name.
    """
    from gnnbench.datasets import catalog
    from gnnbench.datasets.prepare import check_room

    summary = catalog.info(name).summary
    if summary.available:
        try:
            check_room(name)
        except HostMemoryError as error:
            return Failure("oom_host", str(error))
        except (UsageError, DataError) as error:
            return Failure("missing_data", str(error))
        return None
    get = f"; get it: {summary.get}" if summary.get else ""
    return Failure("missing_data", f"dataset '{name}' is not here ({summary.missing}){get}")


def check_names(
    systems: Collection[str], models: Collection[str], more: Collection[str] = ()
) -> None:
    """Raise ``UsageError`` for the first unknown name; a system without a recipe accepts any model.

    ``more``: systems known in another environment.
    """
    for name in systems:
        names.check("system", name, [*registry.known(registry.SYSTEM), *more])
    if models and any(facts(name).composed for name in systems):
        for model in models:
            names.check("model", model, MODELS)


def check_picks(systems: Collection[str], picks: Collection[str], devices: Collection[str]) -> None:
    """Raise ``UsageError`` if no selected system has any of the sampling methods.

    If only other systems have a method of the definition, the selected ones keep their own.
    """
    known = {"default"}
    for name in systems:
        methods = facts(name).methods
        if not methods:
            return
        for device in devices:
            known.update(methods.get(device, ()))
    if not known.intersection(picks):
        for pick in picks:
            names.check("pick", pick, known)
