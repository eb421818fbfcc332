"""The one time that a cell is judged by: stopping, stability, ratio, verdict and comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnnbench.core.cell import Until


@dataclass(frozen=True)
class Judged:
    """``name`` is the column of ``cells.csv`` that holds it, ``key`` its field in a sample; s."""

    name: str
    key: str
    words: str

    def value(self, sample: Mapping[str, Any]) -> float:
        """The judged time of one epoch (s). Raises ``ValueError`` where the epoch has none."""
        found = sample.get(self.key)
        if found is None:
            raise ValueError(f"an epoch judged by its {self.words} has no '{self.key}'")
        return float(found)


_JUDGED = {
    Until.SAMPLE: Judged("sample_time_s", "sample_time_s", "sampling time"),
    Until.MEMORY_IO: Judged("memory_io_time_s", "memory_io_time_s", "memory IO time"),
    Until.COMPUTE: Judged("epoch_wall_s", "wall_s", "wall time"),
}


def of(until: str) -> Judged:
    """What a cell that goes ``until`` is judged by.

    That is its last phase's busy time, or the wall time of the epoch where all phases run.
    """
    return _JUDGED[Until.of(until)]
