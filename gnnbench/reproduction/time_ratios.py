"""Ratios of times of two cells that ran as a pair.

The ratio is the run's own result where it has one: that of a cell and its reference, or of a couple
in ``compare``. A phase of a couple has no result of its own, so its ratio is computed from the
epochs of the couple's pairs. Times of different pairs are never divided.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import Until
from gnnbench.core.counters import REORDER_TIME
from gnnbench.reproduction.evidence import EpochCounts, RunEvidence
from gnnbench.reproduction.interval_arithmetic import of_metric, or_nan
from gnnbench.schema import CellRow, RatioRow
from gnnbench.statistics.estimates import NOTHING, Estimate, exponential, mean_interval
from gnnbench.statistics.stopping_rule import MIN_PAIRS

# Measures and their phase; `time` is the primary metric of the run.
TIME_MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "time": "",
        "sample_time": Until.SAMPLE.word,
        "memory_io_time": Until.MEMORY_IO.word,
        "compute_time": Until.COMPUTE.word,
        "fetch_time": Until.MEMORY_IO.word,
    }
)
FETCH_TIME = "fetch_time"  # memory IO without the time to reorder batches
FEW_PAIRS = f"fewer than {MIN_PAIRS} pairs of fresh processes"
DIFFERENT_WORK = "the work of the two differs"


def time_ratio(
    evidence: RunEvidence, first: CellRow, second: CellRow, measure: str
) -> tuple[Estimate, str]:
    """Time of the first cell / time of the second, and a reason to doubt it or "".

    ``NOTHING`` where the two were not paired or the run has no such ratio.
    """
    phase = TIME_MEASURES[measure]
    if measure == FETCH_TIME:
        return _fetch_ratio(evidence, first, second)
    for a, b, inverted in ((first, second, False), (second, first, True)):
        for ratio, doubt in _reported_ratios(evidence, a, b, phase):
            if inverted:
                return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.n), doubt
            return ratio, doubt
    if phase and (couple := _couple(evidence, first, second)) is not None:
        if couple["work_class"] == "different":
            return NOTHING, DIFFERENT_WORK
        ratio = _from_epochs(
            evidence, first, second, lambda epoch: epoch.sample[f"{phase}_time_s"] or 0.0
        )
        return ratio, _row_doubt(couple) or _few_pairs(ratio.n)
    return NOTHING, ""


def _fetch_ratio(evidence: RunEvidence, first: CellRow, second: CellRow) -> tuple[Estimate, str]:
    rows: list[RatioRow | CellRow] = list(filter(None, [_couple(evidence, first, second)]))
    rows += [b for a, b in ((first, second), (second, first)) if b["reference_id"] == a["id"]]
    for row in rows:
        if row["work_class"] == "different":
            return NOTHING, DIFFERENT_WORK
        ratio = _from_epochs(evidence, first, second, _fetch_s)
        return ratio, _row_doubt(row) or _few_pairs(ratio.n)
    return NOTHING, ""


def _fetch_s(epoch: EpochCounts) -> float:
    reorder_s = sum(value for _, name, _, value in epoch.counts if name == REORDER_TIME.name)
    return max((epoch.sample["memory_io_time_s"] or 0.0) - reorder_s, 0.0)


def _reported_ratios(
    evidence: RunEvidence, a: CellRow, b: CellRow, phase: str
) -> Iterator[tuple[Estimate, str]]:
    """The run's ratios of a's time over b's: of the couple, then of b with a as its reference."""
    is_primary = not phase or b["judged"] == f"{phase}_time_s"
    rows: list[RatioRow | CellRow] = [r for r in evidence.run.ratios if r.pair == f"{a.id}-{b.id}"]
    if b["reference_id"] == a["id"]:
        rows.append(b)
    undefined = Estimate(math.nan, math.nan, math.nan, 0)
    for row in rows:
        if row["work_class"] == "different":
            yield undefined, DIFFERENT_WORK
        elif is_primary and row["ratio"] is not None:
            # A single pair has no interval.
            low, high = or_nan(row["ratio_ci_low"]), or_nan(row["ratio_ci_high"])
            doubt = _row_doubt(row) or _few_pairs(row["pairs"])
            yield Estimate(row["ratio"], low, high, row["pairs"]), doubt
        elif is_primary and (why := row.get("doubtful") or row.get("reason") or row.get("remark")):
            yield undefined, str(why)
    if not is_primary and b["reference_id"] == a["id"] and b["work_class"] != "different":
        speedup = of_metric(evidence.metrics.row(b["id"], phase, m.SPEEDUP))
        if speedup.n:
            yield speedup, _row_doubt(b) or _few_pairs(speedup.n)


def _couple(evidence: RunEvidence, first: CellRow, second: CellRow) -> RatioRow | None:
    """The row of ``ratios.csv`` of two cells, in either order."""
    ids = {f"{first['id']}-{second['id']}", f"{second['id']}-{first['id']}"}
    return next((r for r in evidence.run.ratios if r["pair"] in ids), None)


def _row_doubt(row: RatioRow | CellRow) -> str:
    if row.get("doubtful"):
        return str(row["doubtful"])
    return str(row["reason"]) if row.get("status") == "unstable" else ""


def _few_pairs(pairs: int | None) -> str:
    return FEW_PAIRS if (pairs or 0) < MIN_PAIRS else ""


def _from_epochs(
    evidence: RunEvidence, first: CellRow, second: CellRow, time: Callable[[EpochCounts], float]
) -> Estimate:
    """Ratio of times of an epoch: geometric mean over pairs of fresh processes.

    The value of a pair is the median over its iterations, as for the primary metric. The interval
    has 95 %, because it was not looked at before the end.
    """
    names = {f"{first['id']}-{second['id']}", f"{second['id']}-{first['id']}"}
    a, b = (_epoch_times(evidence, row["id"], names, time) for row in (first, second))
    pairs: dict[tuple[str, int], list[float]] = {}
    for key in a.keys() & b.keys():
        pairs.setdefault(key[:2], []).append(math.log(a[key] / b[key]))
    logarithm = mean_interval([statistics.median(ratios) for ratios in pairs.values()])
    return exponential(logarithm) if logarithm.n else NOTHING


def _epoch_times(
    evidence: RunEvidence, cell: str, pairs: set[str], time: Callable[[EpochCounts], float]
) -> dict[tuple[str, int, int], float]:
    """Times of a cell's epochs by pair, trial and iteration."""
    times = {}
    for epoch in evidence.epochs.get(cell, []):
        if epoch.sample.pair in pairs and (seconds := time(epoch)):
            times[epoch.sample.pair, epoch.sample.life, epoch.sample.round] = seconds
    return times
