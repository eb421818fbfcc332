"""Mean stage times of a sampler over several profiling processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnnbench.statistics.estimates import mean_interval

if TYPE_CHECKING:
    from gnnbench.systems.runtime.system import StageRow


def mean_over_processes(profiles: Sequence[Sequence[StageRow]]) -> list[Mapping[str, object]]:
    """Return the rows of the last profile, with times averaged over all profiles.

    ``host_s`` and ``device_s`` become means with Student's interval (``host_low_s``,
    ``host_high_s``); ``looks`` is the number of processes. The process is the unit, because its
    medians over batches share what differs between processes. A stage that some profile lacks keeps
    the times of the last one.
    """
    averaged: list[Mapping[str, object]] = []
    for row in profiles[-1]:
        matches = [[r for r in rows if _key(r) == _key(row)] for rows in profiles]
        rows = [match[0] for match in matches if match]
        means: dict[str, float] = {}
        if len(rows) == len(profiles):
            means |= _mean_fields("host", [r.get("host_s") for r in rows])
            means |= _mean_fields("device", [r.get("device_s") for r in rows])
        averaged.append({**row, **means})
    return averaged


def _key(row: StageRow) -> tuple[str, int | None]:
    return row["stage"], row["hop"]


def _mean_fields(time: str, values: Sequence[float | None]) -> dict[str, float]:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return {}
    mean = mean_interval(known)
    return {f"{time}_s": mean.value, f"{time}_low_s": mean.low, f"{time}_high_s": mean.high,
            "looks": mean.n}  # fmt: skip
