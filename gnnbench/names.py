"""Look-up of names that users type."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from types import MappingProxyType

from gnnbench.errors import UsageError


def suggestion(name: str, known: Collection[str]) -> str:
    """``did you mean 'x'?``, or the known names where none is near."""
    ordered = sorted(known)
    near = difflib.get_close_matches(name, ordered, n=1, cutoff=0.5)
    if near:
        return f"did you mean '{near[0]}'?"
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
