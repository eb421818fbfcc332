"""Rows of ``metrics.csv`` of a cell: set-up, profiling runs and epochs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gnnbench.analysis import metrics as m
from gnnbench.core import registry
from gnnbench.core.cell import PHASES, Cell, Until
from gnnbench.core.counters import FEATURE_BYTES, LOCK_TIME
from gnnbench.harness.doubt import share
from gnnbench.harness.reduce.comparison import Value, level
from gnnbench.harness.reduce.gather_rates import rate_rows
from gnnbench.harness.reduce.overlap_bounds import bound_rows
from gnnbench.schema import MetricRow
from gnnbench.schema.reports import CellReport, Profile
from gnnbench.schema.samples import EpochSample, read_counts
from gnnbench.statistics.estimates import mean_interval

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState
    from gnnbench.harness.plan import CellPair


SELF_REPORTED = "; reported by a plug-in about itself, not checked"


def setup_metrics(cell: Cell, journal: JournalState) -> list[MetricRow]:
    """Times and counts before the first epoch."""
    report = journal.reports.get(cell.id, CellReport())
    setup, check = report.get("setup"), report.get("check")
    set_up, checked = (
        read_counts(part.get("counts", ())) if part else [] for part in (setup, check)
    )
    rows = [
        m.metric(cell.id, stage, measured, part["seconds"])
        for stage, measured, part in (("setup", m.SETUP, setup), ("check", m.CHECK, check))
        if part
    ]
    if check and (same := check.get("deterministic")) is not None:
        rows.append(m.metric(cell.id, "check", m.DETERMINISTIC, float(same)))
    for c in (*set_up, *checked):
        rows.append(m.metric(cell.id, c.stage, m.meaning(c.name), c.value, where=c.where))
    if "open_s" in report:
        import_s = report["import_s"] + (setup.get("import_s", 0.0) if setup else 0.0)
        rows.append(m.metric(cell.id, "open", m.OPEN, report["open_s"]))
        rows.append(m.metric(cell.id, "open", m.IMPORT, import_s))
        if setup:
            locked_s = sum(c.value for c in set_up if c.name == LOCK_TIME.name)
            start_s = report["open_s"] + setup["seconds"] - locked_s
            rows.append(m.metric(cell.id, "start", m.START, start_s))
    return rows


def profile_metrics(cell: Cell, journal: JournalState) -> list[MetricRow]:
    """Results of a profiling run, which is part of no epoch."""
    return [
        m.metric(
            cell.id, fact.stage, m.meaning(fact.name),
            mean_interval(fact.samples) if fact.samples else fact.value, where=fact.where,
        )
        for fact in journal.profiles.get(cell.id, Profile()).facts
    ]  # fmt: skip


def epoch_metrics(cell: Cell, journal: JournalState, pair: CellPair | None) -> list[MetricRow]:
    """Times, rates and counts of epochs that are not in the row of the cell."""
    samples, trials = journal.measured(cell, pair), journal.by_trial(cell, pair)
    if not samples:
        return []
    rows = [m.metric(cell.id, m.EPOCH, m.WALL, level(trials, lambda s: s.wall_s))]
    rows += _alone_times(cell, trials)
    rows += _extremes(cell, samples, journal.warm_ups(cell, pair))
    rows += _counts(cell, samples)
    rows += bound_rows(cell, journal, trials)
    if cell.goes_until > Until.SAMPLE:
        rows += rate_rows(cell, trials)
    return rows


def trials_value(trials: Sequence[Sequence[EpochSample]], value: Value) -> float | None:
    """Geometric mean over trials of the median of a time; None where no sample has it."""
    time = level(trials, value)
    return time.value if time.n else None


def _alone_times(cell: Cell, trials: Sequence[Sequence[EpochSample]]) -> list[MetricRow]:
    """Time of each phase without any other, averaged as the wall time."""
    times = {
        phase: trials_value(trials, partial(EpochSample.alone_s, phase=phase)) for phase in PHASES
    }
    return [
        m.metric(cell.id, phase, m.ALONE, seconds, n=len(trials))
        for phase, seconds in times.items()
        if seconds is not None
    ]


def _extremes(
    cell: Cell, samples: Sequence[EpochSample], warm_ups: Sequence[EpochSample]
) -> list[MetricRow]:
    """Outer time, longest warm-up, throttled epochs and peaks of memory."""
    warm_s = [s.wall_s for s in warm_ups]
    values: list[tuple[m.Metric, float | None]] = [
        (m.OUTER, statistics.median(s.outer_s for s in samples)),
        (m.FIRST, max(warm_s, default=None)),
        (m.THROTTLED, sum(bool(s.throttle) for s in samples)),
        (m.PEAK_ALLOC, max(s.peak_alloc_bytes or 0 for s in samples)),
        (m.PEAK_RSS, max(s.peak_rss_bytes or 0 for s in samples)),
    ]
    return [
        m.metric(cell.id, m.EPOCH, measured, value, n=len(samples))
        for measured, value in values
        if value is not None
    ]


def _counts(cell: Cell, samples: Sequence[EpochSample]) -> list[MetricRow]:
    """Hit ratio, and the median over epochs of everything that systems count."""
    epochs = [{(c.stage, c.name, c.where): c.value for c in s.counts} for s in samples]
    rows = []
    if ratios := [ratio for epoch in epochs if (ratio := hit_ratio(epoch)) is not None]:
        median = statistics.median(ratios)
        rows.append(m.metric(cell.id, "features", m.HIT_RATIO, median, n=len(ratios)))
    for stage, name, where in dict.fromkeys(key for epoch in epochs for key in epoch):
        # An epoch without this count has counted 0.
        value = statistics.median(epoch.get((stage, name, where), 0) for epoch in epochs)
        rows.append(m.metric(cell.id, stage, m.meaning(name), value, where=where, n=len(samples)))
    for row in rows:
        if _is_foreign(cell, row.stage):
            row.description += SELF_REPORTED
    return rows


def _is_foreign(cell: Cell, stage: str) -> bool:
    """Whether a stage, or the whole epoch loop, is a plug-in's."""
    if stage not in cell.recipe:
        return not cell.composed
    return cell.stage_name(stage) not in registry.OURS[stage]


def hit_ratio(counts: Mapping[tuple[str, str, str], float]) -> float | None:
    """Share of an epoch's rows from a cache, its own or another rank's; None without a cache.

    ``counts``: value by (stage, measure, where).
    """
    rows = {key[2]: n for key, n in counts.items() if key[:2] == ("features", FEATURE_BYTES.name)}
    if "cache" not in rows or not any(rows.values()):
        return None
    return (rows["cache"] + rows.get("peer", 0)) / sum(rows.values())


def cpu_metrics(cell: Cell, pair: CellPair | None, journal: JournalState) -> list[MetricRow]:
    """CPU use of other programs and of the idle worker."""
    samples = journal.measured(cell, pair)
    uses: tuple[tuple[m.Metric, Value], ...] = (
        (m.FOREIGN_CPU, lambda s: s.foreign_cpu_s), (m.IDLE_CPU, lambda s: s.idle_cpu_s),
    )  # fmt: skip
    return [
        m.metric(cell.id, m.EPOCH, measured, share(samples, cpu_s), n=len(samples))
        for measured, cpu_s in uses
        if samples
    ]
