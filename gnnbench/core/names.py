"""Look-up of names that users type."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from gnnbench.core.errors import UsageError

MOST_TOLD = 40  # names in a message
LONGEST = 200  # letters of a name that is compared with those that are known


def nearest(name: str, known: Collection[str]) -> str:
    """The known name that is meant, if one is near, else "".

    Near is what shares half of its letters, in order; of these the one that fewest slips of the
    hand lead away from, two letters exchanged being one slip.
    """
    if len(name) > LONGEST:
        return ""
    typed = name.lower()
    lowered = {one.lower(): one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(typed, lowered, n=len(lowered) or 1, cutoff=0.5)
    shares = {one: slips(typed, one) / max(len(typed), len(one)) for one in near}
    best = min(near, key=lambda one: shares[one], default="")
    return lowered[best] if best and (shares[best] < 0.6 or best.startswith(typed)) else ""


def slips(typed: str, meant: str) -> int:
    """Letters left out, added, mistaken or exchanged with the next between two words, at least."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, a in enumerate(typed):
        older, before, row = before, row, [i + 1]
        for j, b in enumerate(meant):
            best = min(before[j + 1] + 1, row[j] + 1, before[j] + (a != b))
            if i and j and a == meant[j - 1] and typed[i - 1] == b:
                best = min(best, older[j - 1] + 1)
            row.append(best)
    return row[-1]


def suggestion(name: str, known: Collection[str]) -> str:
    """``did you mean 'x'?``, or the known names where none is near."""
    ordered = sorted(known)
    if near := nearest(name, known):
        return f"did you mean '{near}'?"
    if not ordered:
        return "none is known"
    told = ", ".join(ordered[:MOST_TOLD])
    more = len(ordered) - MOST_TOLD
    return f"known are {told}" + (f" and {more} more" if more > 0 else "")


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


def typed_path(text: str) -> Path:
    """A path that a user typed, with ``~`` expanded; it need not exist.

    Raises ``UsageError`` for one that cannot be looked up: a name too long, no permission.
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # there is no such user
        path = Path(text)
    try:
        path.exists()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"'{text[:LONGEST]}' cannot be opened ({why.lower()}); give another path"
        ) from None
    return path


def known_spelling(name: str, known: Collection[str]) -> str:
    """The one known name that equals ``name`` in any case, else ``name`` as it is.

    A name that is known as it is typed means itself.
    """
    if not isinstance(name, str) or name in known:
        return name
    same = [one for one in known if one.casefold() == name.strip().casefold()]
    return same[0] if len(same) == 1 else name
