"""Look-up of names that users type."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from types import MappingProxyType

from gnnbench.errors import UsageError


def nearest(name: str, known: Collection[str]) -> str:
    """The known name that is meant, if one is near, else ""."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)), "")


def suggestion(name: str, known: Collection[str]) -> str:
    """``did you mean 'x'?``, or the known names where none is near."""
    ordered = sorted(known)
    if near := nearest(name, known):
        return f"did you mean '{near}'?"
    return f"known are {', '.join(ordered)}" if ordered else "none is known"


def check(
    kind: str,
    name: str,
    known: Collection[str],
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ``UsageError`` unless ``name`` is known; ``renamed`` maps earlier names to today's."""
    if not isinstance(name, str):
        raise UsageError(f"{kind} must be a name, not {name!r}")
    if name not in known and name in renamed:
        raise UsageError(f"{kind} '{name}' is called '{renamed[name]}' now")
    if name not in known:
        raise UsageError(f"unknown {kind} '{name}'; {suggestion(name, known)}")
