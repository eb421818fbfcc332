"""Queries of the plan about this machine: systems, their options, datasets, models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache

from gnnbench.analysis.labels import parse_label
from gnnbench.core import names, registry
from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import (
    DataError,
    HostMemoryError,
    MissingError,
    UnsupportedError,
    UsageError,
)
from gnnbench.features.spec import StoreSpec
from gnnbench.harness.available import resolve, system
from gnnbench.harness.failures import Failure
from gnnbench.models.kinds import MODELS
from gnnbench.systems.runtime.find import Named
from gnnbench.systems.runtime.recipe import Recipe


def known_paths(name: str, given: Mapping[str, object]) -> Collection[str]:
    """Return the options of a system with the stages in ``given``.

    Raises ``UsageError`` for an unknown system, ``MissingError`` if no environment can answer.
    """
    check_names([name], [])
    named = system(name)
    if isinstance(named, Failure):
        raise MissingError(named.reason)
    return named.options(given)


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


def needs_graph(name: str) -> bool:
    """Whether a worker of this system opens the dataset."""
    named = system(name)
    return isinstance(named, Failure) or named.needs_graph


def shared_arrays(cell: Cell) -> tuple[str, ...]:
    """Return the arrays of the graph that a run keeps in shared memory for all workers of the
    cell.
    """
    named = system(cell.system)
    return () if isinstance(named, Failure) else named.shared(cell)


def feature_store(cell: Cell) -> StoreSpec | None:
    """Return the feature store of a cell; None if it has none, or if it is unknown."""
    named = system(cell.system)
    return None if isinstance(named, Failure) else named.store(cell)


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
    if models and any(isinstance(f := system(s), Named) and f.composed for s in systems):
        for model in models:
            names.check("model", model, MODELS)


def check_picks(systems: Collection[str], picks: Collection[str], devices: Collection[str]) -> None:
    """Raise ``UsageError`` if no selected system has any of the sampling methods.

    If only other systems have a method of the definition, the selected ones keep their own.
    """
    known = {"default"}
    for name in systems:
        named = system(name)
        if isinstance(named, Failure) or not isinstance(named.definition, Recipe):
            return
        for device in devices:
            with suppress(UnsupportedError):
                known.update(named.definition.sampler.picks_on(device))
    if not known.intersection(picks):
        for pick in picks:
            names.check("pick", pick, known)
