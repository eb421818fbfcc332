"""Look-up of names that users type."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from gnnbench.errors import UsageError


def suggestion(name: str, known: Collection[str]) -> str:
    """``did you mean 'x'?``, or the known names where none is near."""
    ordered = sorted(known)
    near = difflib.get_close_matches(name, ordered, n=1, cutoff=0.5)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known are {', '.join(ordered)}" if ordered else "none is known"


def check(kind: str, name: str, known: Collection[str]) -> None:
    """Raise ``UsageError`` unless ``name`` is known."""
    if not isinstance(name, str):
        raise UsageError(f"{kind} must be a name, not {name!r}")
    if name not in known:
        raise UsageError(f"unknown {kind} '{name}'; {suggestion(name, known)}")
