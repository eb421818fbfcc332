"""A hop's fanout: most neighbours of a destination, or ``ALL`` of them, as DGL and PyG have it."""

from __future__ import annotations

ALL = -1
MOST = 2**31 - 1  # what the kernels take


def check(fanout: int) -> int:
    """The fanout. Raises ``ValueError`` where it is neither ``ALL`` nor 1 to ``MOST``."""
    if not 1 <= fanout <= MOST and fanout != ALL:
        raise ValueError(f"a fanout is 1 to {MOST}, or {ALL}: all neighbours")
    return fanout


def at_most(fanout: int, degree: float) -> float:
    """Edges that a row of ``degree`` entries, or as many on the mean, gives without replacement."""
    return degree if fanout == ALL else min(fanout, degree)
