"""A hop's fanout: most neighbours of a destination, or ``ALL`` of them, as DGL and PyG have it."""

from __future__ import annotations

ALL = -1


def check(fanout: int) -> int:
    """The fanout. Raises ``ValueError`` where it is neither a number of neighbours nor ``ALL``."""
    if fanout < 1 and fanout != ALL:
        raise ValueError(f"a fanout is at least 1, or {ALL}: all neighbours")
    return fanout


def at_most(fanout: int, degree: float) -> float:
    """Edges that a row of ``degree`` entries, or as many on the mean, gives without replacement."""
    return degree if fanout == ALL else min(fanout, degree)
