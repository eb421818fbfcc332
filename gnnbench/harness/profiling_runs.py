"""Several looks inside a sampler, each by a process of its own, made one with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnbench.statistics.estimates import mean_interval

Row = dict[str, Any]
TIMES = ("host", "device")


def over_looks(looks: Sequence[Sequence[Row]]) -> list[Row]:
    """Rows of the last look, their times the means over all looks with Student's interval of them.

    A process is the unit: its medians over batches share what differs between processes. A stage
    that some look lacks stays as the last one has it.
    """
    found = []
    for row in looks[-1]:
        same = [[r for r in look if _key(r) == _key(row)] for look in looks]
        rows = [r[0] for r in same if r]
        made = dict(row)
        if len(rows) == len(looks):
            for time in TIMES:
                made |= _estimated(time, [r.get(f"{time}_s") for r in rows])
        found.append(made)
    return found


def _key(row: Row) -> tuple[Any, Any]:
    return row["stage"], row["hop"]


def _estimated(time: str, values: Sequence[float | None]) -> Row:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return {}
    mean = mean_interval(known)
    return {f"{time}_s": mean.value, f"{time}_low_s": mean.low, f"{time}_high_s": mean.high,
            "looks": mean.n}  # fmt: skip
