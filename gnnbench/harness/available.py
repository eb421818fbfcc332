"""Whether systems can run in this process's environment.

The plan calls this module here and in workers of other environments, so it runs on Python 3.10 with
numpy and torch alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import GnnbenchError
from gnnbench.harness.failures import Failure, host_memory
from gnnbench.systems.runtime.find import Named, NotASystemError, Resolved, find
from gnnbench.systems.runtime.recipe import Recipe, from_plain


@dataclass(frozen=True)
class Availability:
    """Why a system cannot run (None: it can), and which system may replace it."""

    failure: Failure | None = None
    stand_in: str = ""


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
