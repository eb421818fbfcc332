"""Find systems by name through the entry point ``gnnbench.systems``.

``GNNBENCH_EXTRA_SYSTEMS="name=module:Class,..."`` adds more without installing a distribution.
"""

from __future__ import annotations

import difflib
import os
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from gnnbench.errors import MissingError, UsageError
from gnnbench.systems.base import System

EXTRA = "GNNBENCH_EXTRA_SYSTEMS"


@lru_cache(maxsize=1)
def _entries() -> dict[str, EntryPoint]:
    found = {e.name: e for e in entry_points(group="gnnbench.systems")}
    for text in filter(None, os.environ.get(EXTRA, "").split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or ":" not in value:
            raise UsageError(f"{EXTRA} holds '{text}', which is not of the form name=module:Class")
        found[name] = EntryPoint(name, value, "gnnbench.systems")
    if not found:
        raise MissingError(
            "no systems are registered because gnnbench is not installed; run 'make install'"
        )
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Names of all registered systems, third-party ones included."""
    return list(_entries())


def get(name: str) -> type[System]:
    """Class of a system. Raises ``UsageError`` for an unknown name and suggests the nearest."""
    entry = _entries().get(name)
    if entry is None:
        near = difflib.get_close_matches(name, names(), n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(names())}"
        raise UsageError(f"unknown system '{name}'; {hint}")
    loaded: type[System] = entry.load()
    return loaded
