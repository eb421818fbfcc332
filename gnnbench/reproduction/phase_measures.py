"""Measures of the time of phases: shares of an epoch, and speed-ups over the reference.

Shares of time differ between processes, so the unit of an interval is a trial. Each function
returns ``NOTHING`` for a cell without the number.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import PHASES
from gnnbench.core.counters import GROUPS_TIME, HOTNESS_TIME
from gnnbench.reproduction.evidence import EpochCounts, MeasureFunction, RunEvidence
from gnnbench.reproduction.interval_arithmetic import of_metric, or_nan
from gnnbench.schema import CellRow
from gnnbench.statistics.estimates import NOTHING, Estimate, mean_interval

MAX_OVERLAP = 0.02
"""Overlap / epoch time up to which phases count as sequential."""

PhaseStatistic = Callable[[dict[str, float]], float]
"""A number of an epoch's seconds by phase, with ``wall`` and ``overlap``."""


def over_trials(
    evidence: RunEvidence, row: CellRow, statistic: PhaseStatistic, required: Collection[str] = ()
) -> Estimate:
    """Mean over trials of the median over epochs of a statistic of phase times.

    Epochs in which a ``required`` phase was not timed are left out.
    """

    def value(epoch: EpochCounts) -> float | None:
        sample = epoch.sample
        timed = {p: s for p in PHASES if (s := sample[f"{p}_time_s"]) is not None}
        if len(timed) < 2 or not timed.keys() >= set(required) or not sample.wall_s:
            return None
        return statistic({**timed, "wall": sample.wall_s, "overlap": sample.overlap_s or 0.0})

    return mean_interval([statistics.median(own) for own in evidence.by_trial(row, value)])


def overlap_share(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Time of an epoch in which phases overlap / its wall time."""
    return over_trials(evidence, row, lambda s: s["overlap"] / s["wall"])


def phases_overlap(evidence: RunEvidence, row: CellRow) -> bool:
    """Whether the phases of a cell run concurrently.

    Concurrent phases slow each other down, and their shares add up to more than one.
    """
    share = overlap_share(evidence, row)
    return share.n > 0 and share.value > MAX_OVERLAP


def _of_sequential_phases(required: Collection[str], statistic: PhaseStatistic) -> MeasureFunction:
    """``over_trials`` for cells whose phases do not overlap."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        if phases_overlap(evidence, row):
            return NOTHING
        return over_trials(evidence, row, statistic, required)

    return measure


def share(phase: str) -> MeasureFunction:
    """Time of a phase / wall time of the epoch."""
    return _of_sequential_phases([phase], lambda s: s[phase] / s["wall"])


def lead(phase: str) -> MeasureFunction:
    """Time of a phase / time of the longest other phase."""

    def over_others(times: dict[str, float]) -> float:
        others = [times[name] for name in PHASES if name in times and name != phase]
        return times[phase] / max(others)

    return _of_sequential_phases([phase], over_others)


def phase_ratio(phase: str, other: str) -> MeasureFunction:
    """Time of a phase / time of another phase."""
    return _of_sequential_phases([phase, other], lambda s: s[phase] / s[other])


def gain(phase: str) -> MeasureFunction:
    """Speed-up of a phase over the reference, as the run reports it for the pair."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        if row["work_class"] == "different" or row["reference_id"] == row["id"]:
            return NOTHING
        return of_metric(evidence.metrics.row(row["id"], phase, m.SPEEDUP))

    return measure


def gain_over_sampling(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Speed-up of an epoch / speed-up of sampling alone, both over the reference."""
    sampling = gain("sample")(evidence, row)
    if not sampling.n or row["ratio"] is None or row["judged"] != "epoch_wall_s":
        return NOTHING
    low, high = or_nan(row["ratio_ci_low"]), or_nan(row["ratio_ci_high"])
    return Estimate(
        row["ratio"] / sampling.value, low / sampling.high, high / sampling.low, sampling.n
    )


def presampling_epochs(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Time of counting node accesses for a cache / time of an epoch, mean over trials."""
    counting_s = evidence.metrics.value(row["id"], "features", HOTNESS_TIME)
    if counting_s is None:
        return NOTHING
    walls = evidence.by_trial(row, lambda epoch: epoch.sample.wall_s or None)
    return mean_interval([counting_s / statistics.median(times) for times in walls])


def groups_of_compute(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Time of making neighbour groups / time of computing, mean over trials of the median epoch."""

    def value(epoch: EpochCounts) -> float | None:
        grouping_s = sum(float(c[3]) for c in epoch.counts if c[1] == GROUPS_TIME.name)
        compute_s = epoch.sample.compute_time_s
        return grouping_s / compute_s if grouping_s and compute_s else None

    return mean_interval([statistics.median(own) for own in evidence.by_trial(row, value)])
