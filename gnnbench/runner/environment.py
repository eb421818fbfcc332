"""What the plan asks about this machine: systems, their options, datasets, models."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import lru_cache

from gnnbench import names
from gnnbench.cell import NO_MODEL, Cell
from gnnbench.errors import GnnbenchError, MissingError, UsageError
from gnnbench.runner.failures import Failure
from gnnbench.runner.plan import Availability
from gnnbench.systems import registry
from gnnbench.systems.base import System


def system_class(name: str) -> type[System] | Failure:
    """A registered system, or why its module does not import. ``UsageError`` if unknown."""
    try:
        return registry.get(name)
    except GnnbenchError:
        raise
    except Exception as error:  # a third party's module may raise anything
        return Failure(
            "missing_dep", f"system '{name}' does not import ({error}); mend or remove it"
        )


def known_options(system: str) -> Collection[str]:
    """Option names of a system."""
    found = system_class(system)
    return () if isinstance(found, Failure) else found.options


def options_to_set(system: str) -> Collection[str]:
    """Like ``known_options`` for what the user sets; ``MissingError`` where nobody can know."""
    found = system_class(system)
    if isinstance(found, Failure):
        raise MissingError(found.reason)
    return found.options


@lru_cache(maxsize=64)
def availability(system: str, device: str) -> Availability:
    """Whether a system can run on a device of this machine."""
    found = system_class(system)
    if isinstance(found, Failure):
        return Availability(found)
    if device not in found.devices:
        able = ", ".join(found.devices)
        reason = f"system '{system}' does not run on '{device}'; give --device {able}"
        return Availability(Failure("unsupported", reason))
    if (missing := found.missing(device)) is not None:
        failure = Failure("missing_dep", f"{missing.reason}; {missing.fix}")
        return Availability(failure, getattr(found, "stand_in", ""))
    return Availability()


def needs_graph(system: str) -> bool:
    """Whether a worker of this system opens the dataset."""
    found = system_class(system)
    return isinstance(found, Failure) or getattr(found, "needs_graph", True)


@lru_cache(maxsize=64)
def dataset_state(name: str) -> Failure | None:
    """Why a dataset cannot be had here. ``UsageError`` for an unknown name."""
    from gnnbench.data import catalog

    summary = catalog.info(name).summary
    if summary.available:
        return None
    get = f"; get it: {summary.get}" if summary.get else ""
    return Failure("missing_dep", f"dataset '{name}' is not here ({summary.missing}){get}")


def check_names(systems: Collection[str], models: Collection[str]) -> None:
    """Raise ``UsageError`` for the first unknown name."""
    for system in systems:
        names.check("system", system, registry.names())
    if "gnnbench.models.stack" in sys.modules:  # only a system with models of its own is without
        from gnnbench.models.stack import MODELS

        for model in models:
            names.check("model", model, [*MODELS, NO_MODEL])


def check_picks(systems: Collection[str], picks: Collection[str]) -> None:
    """Raise ``UsageError`` for a pick that no selected system has, if all say which they have."""
    known = {"default"}
    for system in systems:
        found = getattr(system_class(system), "picks", None)
        if found is None:
            return
        known.update(found)
    for pick in picks:
        names.check("pick", pick, known)


def check_options(options: dict[str, dict[str, object]]) -> None:
    """Raise ``UsageError`` for an option that its system does not know."""
    for system, values in options.items():
        if system not in registry.names():
            raise UsageError(
                f"[systems.{system}]: unknown system; {names.suggestion(system, registry.names())}"
            )
        if isinstance(system_class(system), Failure):
            continue
        for option in values:
            if option not in (known := known_options(system)):
                raise UsageError(
                    f"system '{system}' has no option '{option}'; {names.suggestion(option, known)}"
                )


def check_option_values(cells: Collection[Cell]) -> None:
    """Raise ``UsageError`` for a value that an option of a cell's system cannot take."""
    for cell in cells:
        found = system_class(cell.system)
        if not isinstance(found, Failure) and issubclass(found, System):
            found.check_options(cell.options)
