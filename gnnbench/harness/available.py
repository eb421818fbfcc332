"""What the plan asks about systems, answered by this process.

The plan asks the runner's process about built-in systems, the helper process about plug-ins
(``plugin_process``), and workers about other environments. So this module runs on Python 3.10 with
numpy and torch alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import GnnbenchError, MissingError, UnsupportedError
from gnnbench.harness.failures import Failure, host_memory
from gnnbench.systems.runtime.find import Named, NotASystemError, Resolved, find
from gnnbench.systems.runtime.recipe import Recipe, from_plain


@dataclass(frozen=True)
class Availability:
    """Why a system cannot run (None: it can), and which system may replace it."""

    failure: Failure | None = None
    stand_in: str = ""


@dataclass(frozen=True)
class SystemFacts:
    """Whether a system is a recipe, whether its worker opens the dataset, and the sampling methods
    of a recipe by device.

    The defaults are those of a system that cannot be inspected.
    """

    composed: bool = False
    needs_graph: bool = True
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class CellFacts:
    """Arrays that workers of a cell share in memory, and how its feature store is driven.

    ``traced``: its policy is profiled; ``foresees``: it gets the numbers of so many next epochs.
    """

    shared: tuple[str, ...] = ()
    traced: bool = False
    foresees: int = 0


def system(name: str) -> Named | Failure:
    """Return a registered system, or why it is unavailable: it is not registered, or its import
    fails.
    """
    if name not in registry.known(registry.SYSTEM):
        reason = f"no package here brings the system '{name}'; install the one that does"
        return Failure("missing_dep", reason)
    try:
        return find(name)
    except GnnbenchError:
        raise
    except NotASystemError as error:
        return Failure(
            "missing_dep",
            f"'{name}' is no system ({error}); {registry.remedy(registry.SYSTEM, name)}",
        )
    except Exception as error:  # a third party's module may raise anything
        if (short := host_memory(error)) is not None:
            return short
        why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        return Failure(
            "missing_dep",
            f"system '{name}' does not import ({why}); {registry.remedy(registry.SYSTEM, name)}",
        )


def broken(name: str, error: Exception) -> Failure:
    """Return why a registered system that raises an error when it is inspected is unavailable."""
    why = str(error) if isinstance(error, GnnbenchError) else f"{type(error).__name__}: {error}"
    return Failure(
        "missing_dep",
        f"system '{name}' cannot be used ({why}); {registry.remedy(registry.SYSTEM, name)}",
    )


def resolve(name: str, given: Mapping[str, object], device: str, until: Until) -> Resolved:
    """Return the resolved settings of a system in a cell. Raises ``UsageError``."""
    named = system(name)
    if isinstance(named, Failure):
        return Resolved({"system": name, **given})  # nobody knows what it is
    return named.resolved(given, device, until)


def options(name: str, given: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the words among the legal values of a system's options, by path.

    ``given`` may name other stages. Raises ``MissingError``.
    """
    named = system(name)
    if isinstance(named, Failure):
        raise MissingError(named.reason)
    return {path: option.choice_words for path, option in named.options(given).items()}


def facts(name: str) -> SystemFacts:
    """Return facts of a registered system."""
    named = system(name)
    if isinstance(named, Failure):
        return SystemFacts()
    methods: dict[str, Sequence[str]] = {}
    if isinstance(named.definition, Recipe):
        for device in ("cpu", "cuda"):
            with suppress(UnsupportedError):
                methods[device] = list(named.definition.sampler.picks_on(device))
    return SystemFacts(named.composed, named.needs_graph, methods)


def cell_facts(cell: Cell) -> CellFacts:
    """Return facts of a cell's stages."""
    named = system(cell.system)
    if isinstance(named, Failure):
        return CellFacts()
    store = named.store(cell)
    return CellFacts(
        named.shared(cell), store is not None and store.traced, store.foresees if store else 0
    )


@lru_cache(maxsize=256)
def availability(name: str, device: str, until: str, recipe: str = "") -> Availability:
    """Return whether a system can run on a device of this machine.

    ``recipe`` is a cell's recipe as JSON; "" stands for the system as registered.
    """
    named = system(name)
    if isinstance(named, Failure):
        return Availability(named)
    try:
        return _asked(named, device, until, recipe)
    except GnnbenchError:
        raise
    except Exception as error:  # a third party's class may raise anything
        return Availability(broken(name, error))


def _asked(named: Named, device: str, until: str, recipe: str) -> Availability:
    """As ``availability``, for a system that is registered."""
    name = named.name
    if not recipe and device not in named.devices:
        able = " or ".join(named.devices)
        mend = f"give --device {able}" if able else "its stages share no device; change one"
        reason = f"system '{name}' does not run on '{device}'; {mend}"
        return Availability(Failure("unsupported", reason))
    if named.composed and recipe:
        own = named.definition if isinstance(named.definition, Recipe) else None
        missing = from_plain(name, json.loads(recipe), own).missing(device, Until.of(until))
    else:
        missing = named.missing(device, Until.of(until))
    if missing is not None:
        failure = Failure("missing_dep", f"{missing.reason}; {missing.fix}")
        return Availability(failure, named.stand_in)
    return Availability()


def state(cell: Cell) -> Availability:
    """Return whether a cell can run on this machine."""
    recipe = json.dumps(cell.recipe, sort_keys=True) if cell.composed else ""
    return availability(cell.system, cell.device, cell.until, recipe)
