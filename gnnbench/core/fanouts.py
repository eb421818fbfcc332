"""Fanout of a hop: the maximum number of neighbours, or ``ALL``, as in DGL and PyG."""

from __future__ import annotations

ALL = -1
MOST = 2**31 - 1  # limit of the kernels


def check(fanout: int) -> int:
    """Return the fanout. Raises ``ValueError`` unless it is ``ALL`` or 1 to ``MOST``."""
    if not 1 <= fanout <= MOST and fanout != ALL:
        raise ValueError(f"a fanout is 1 to {MOST}, or {ALL}: all neighbours")
    return fanout


def at_most(fanout: int, degree: float) -> float:
    """Edges sampled without replacement from a row of ``degree`` entries (or mean degree)."""
    return degree if fanout == ALL else min(fanout, degree)
