"""The primary metric of a cell, which decides stopping, stability, ratio and verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gnnbench.core.cell import Until


@dataclass(frozen=True)
class Judged:
    """A time (s): ``name`` is its column of ``cells.csv``, ``key`` its field in a sample."""

    name: str
    key: str
    words: str

    def value(self, sample: Mapping[str, object]) -> float:
        """Return the primary metric of one epoch (s). Raises ``ValueError`` if it has none."""
        seconds = sample.get(self.key)
        if not isinstance(seconds, (int, float)):
            raise ValueError(f"an epoch judged by its {self.words} has no '{self.key}'")
        return float(seconds)


_JUDGED = {
    Until.SAMPLE: Judged("sample_time_s", "sample_time_s", "sampling time"),
    Until.MEMORY_IO: Judged("memory_io_time_s", "memory_io_time_s", "memory IO time"),
    Until.COMPUTE: Judged("epoch_wall_s", "wall_s", "wall time"),
}


def of(until: str) -> Judged:
    """Return the primary metric of cells with this ``until``.

    It is the busy time of the last phase, or the epoch's wall time if all phases run.
    """
    return _JUDGED[Until.of(until)]
