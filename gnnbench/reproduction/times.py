"""Ratios of times of two cells that ran beside one another, pair by pair.

A ratio is the one that the run itself judged; of what it does not judge, a phase of two cells of
which neither is the other's reference, it is made of the pair's own epochs. Times of different
pairs are never divided.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Until
from gnnbench.reproduction.cell_internals import or_nan, told
from gnnbench.reproduction.evidence import Opened
from gnnbench.statistics.estimates import NOTHING, Estimate, exponential, mean_interval
from gnnbench.statistics.stopping_rule import MIN_PAIRS

Row = dict[str, Any]
Time = Callable[[Row], float]

# Of two cells alone. `time` is the one that the run judged by.
TIMES: Mapping[str, str] = MappingProxyType(
    {
        "time": "",
        "sample_time": Until.SAMPLE.word,
        "memory_io_time": Until.MEMORY_IO.word,
        "compute_time": Until.COMPUTE.word,
    }
)


def time_ratio(opened: Opened, first: Row, second: Row, measure: str) -> tuple[Estimate, str]:
    """The first's time over the second's, as their run judged it, and a doubt of it, or "".

    ``NOTHING`` where the two did not run beside one another, or the run tells no such ratio.
    """
    stage = TIMES[measure]
    for a, b, turned in ((first, second, False), (second, first, True)):
        for row in _beside(opened, a, b, stage):
            low, high = or_nan(row["ratio_ci_low"]), or_nan(row["ratio_ci_high"])  # one pair: none
            found = Estimate(row["ratio"], low, high, row["pairs"])
            if turned:
                found = Estimate(1 / found.value, 1 / found.high, 1 / found.low, found.n)
            return found, _doubt(row)
    if stage and (couple := _couple(opened, first, second)) is not None:
        if couple["work_class"] == "different":
            return NOTHING, "the work of the two differs"
        found = _of_epochs(opened, first, second, lambda epoch: epoch[f"{stage}_time_s"] or 0.0)
        return found, _doubt({**couple, "pairs": found.n})
    return NOTHING, ""


def _beside(opened: Opened, a: Row, b: Row, stage: str) -> Iterable[Row]:
    """Rows that tell a's time over b's: of the couple, of b with a as its reference."""
    judged = not stage or b["judged"] == f"{stage}_time_s"
    rows = [r for r in opened.run.ratios if r["pair"] == f"{a['id']}-{b['id']}"]
    if b["reference_id"] == a["id"]:
        rows.append(b)
    for row in rows:
        if row["work_class"] == "different":
            yield {**_EMPTY, "doubtful": "the work of the two differs"}
        elif judged and row["ratio"] is not None:
            yield row
        elif judged and (why := row.get("doubtful") or row.get("reason") or row.get("remark")):
            yield {**_EMPTY, "doubtful": why}
    if not judged and b["reference_id"] == a["id"] and b["work_class"] != "different":
        found = told(opened.metrics.row(b["id"], stage, m.SPEEDUP))
        if found.n:
            names = ("ratio", "ratio_ci_low", "ratio_ci_high", "pairs")
            yield dict(zip(names, (found.value, found.low, found.high, found.n), strict=True))


_EMPTY: Mapping[str, Any] = MappingProxyType(
    {"ratio": math.nan, "ratio_ci_low": math.nan, "ratio_ci_high": math.nan, "pairs": 0}
)


def _couple(opened: Opened, first: Row, second: Row) -> Row | None:
    """The row of two cells that the definition has run beside one another, in either order."""
    ids = {f"{first['id']}-{second['id']}", f"{second['id']}-{first['id']}"}
    return next((r for r in opened.run.ratios if r["pair"] in ids), None)


def _doubt(row: Row) -> str:
    if row.get("doubtful"):
        return str(row["doubtful"])
    if row.get("status") == "unstable":
        return str(row["reason"])
    few = (row["pairs"] or 0) < MIN_PAIRS
    return f"fewer than {MIN_PAIRS} pairs of fresh processes" if few else ""


def _of_epochs(opened: Opened, first: Row, second: Row, time: Time) -> Estimate:
    """The first's time of an epoch over the second's, over pairs of fresh processes.

    Each pair has the median of its rounds, the mean is the geometric one, as of the times that are
    judged; the interval is one of 95 %, for nobody looked at it before the end.
    """
    names = {f"{first['id']}-{second['id']}", f"{second['id']}-{first['id']}"}
    mine, other = (_times(opened, row["id"], names, time) for row in (first, second))
    lives: dict[tuple[str, int], list[float]] = {}
    for key in mine.keys() & other.keys():
        lives.setdefault(key[:2], []).append(math.log(mine[key] / other[key]))
    found = mean_interval([statistics.median(ratios) for ratios in lives.values()])
    return exponential(found) if found.n else NOTHING


def _times(
    opened: Opened, ident: str, pairs: set[str], of: Time
) -> dict[tuple[str, int, int], float]:
    found = {}
    for epoch in opened.epochs.get(ident, []):
        if epoch["pair"] in pairs and (time := of(epoch)):
            found[epoch["pair"], epoch["life"], epoch["round"]] = time
    return found
