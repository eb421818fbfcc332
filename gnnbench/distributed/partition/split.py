"""Methods that split a graph over ranks, by name."""

from __future__ import annotations

from dataclasses import dataclass

NONE, SEEDS, VANILLA, HYBRID = SPLITS = ("none", "seeds", "vanilla", "hybrid")


@dataclass(frozen=True)
class Split:
    """``mode`` (one of ``SPLITS`` but none), the partitioning method and its seed."""

    mode: str
    method: str
    seed: int
