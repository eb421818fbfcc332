"""Look up names that users type, with suggestions."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from gnnbench.core.errors import UsageError

MAX_LISTED = 40  # names in a message
LONGEST = 200  # longer names are not compared with known ones


def nearest(name: str, known: Collection[str]) -> str:
    """The most similar known name, or "" if none is similar.

    Candidates share half of their letters in order; of these, the one with the smallest edit
    distance (``slips``) relative to its length.
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
    """Edit distance with transpositions (optimal string alignment)."""
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
    listed = ", ".join(ordered[:MAX_LISTED])
    more = len(ordered) - MAX_LISTED
    return f"known are {listed}" + (f" and {more} more" if more > 0 else "")


def check(
    kind: str,
    name: str,
    known: Collection[str],
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ``UsageError`` unless ``name`` is known; ``renamed`` maps old names to new ones."""
    if not isinstance(name, str):
        raise UsageError(f"{kind} must be a name, not {name!r}")
    if name not in known and name in renamed:
        raise UsageError(f"{kind} '{name}' is called '{renamed[name]}' now")
    if name not in known:
        raise UsageError(f"unknown {kind} '{name}'; {suggestion(name, known)}")


def typed_path(text: str) -> Path:
    """A path typed by a user, with ``~`` expanded; it need not exist.

    Raises ``UsageError`` for a path that cannot be looked up (too long, no permission).
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # unknown user
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
    """The known name that equals ``name`` ignoring case, if exactly one does; else ``name``."""
    if not isinstance(name, str) or name in known:
        return name
    same = [one for one in known if one.casefold() == name.strip().casefold()]
    return same[0] if len(same) == 1 else name
