"""Rows of ``metrics.csv`` of a cell: set-up, profiling runs and epochs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gnnbench.analysis import metrics as m
from gnnbench.core.cell import PHASES, Cell, Until
from gnnbench.core.counters import FEATURE_BYTES, LOCK_TIME
from gnnbench.harness.doubt import share
from gnnbench.harness.reduce.comparison import level
from gnnbench.harness.reduce.gather_rates import rate_rows
from gnnbench.harness.reduce.overlap_bounds import bound_rows
from gnnbench.schema import MetricRow

if TYPE_CHECKING:
    from gnnbench.harness.journal import JournalState, Record
    from gnnbench.harness.plan import Pair


def setup_metrics(cell: Cell, journal: JournalState) -> list[MetricRow]:
    """Times and counts before the first epoch."""
    report = journal.reports.get(cell.id, {})
    rows = [
        m.metric(cell.id, stage, measured, report[stage]["seconds"])
        for stage, measured in (("setup", m.SETUP), ("check", m.CHECK))
        if stage in report
    ]
    if (same := report.get("check", {}).get("deterministic")) is not None:
        rows.append(m.metric(cell.id, "check", m.DETERMINISTIC, float(same)))
    for part in (report.get("setup", {}), report.get("check", {})):
        for stage, name, where, value in part.get("counts", ()):
            rows.append(m.metric(cell.id, stage, m.meaning(name), value, where=where))
    if "open_s" in report:
        import_s = report["import_s"] + report.get("setup", {}).get("import_s", 0.0)
        rows.append(m.metric(cell.id, "open", m.OPEN, report["open_s"]))
        rows.append(m.metric(cell.id, "open", m.IMPORT, import_s))
        if setup := report.get("setup"):
            locked_s = sum(c[3] for c in setup.get("counts", ()) if c[1] == LOCK_TIME.name)
            start_s = report["open_s"] + setup["seconds"] - locked_s
            rows.append(m.metric(cell.id, "start", m.START, start_s))
    return rows


def profile_metrics(cell: Cell, journal: JournalState) -> list[MetricRow]:
    """Results of a profiling run, which is part of no epoch."""
    return [
        m.metric(
            cell.id, fact["stage"], m.meaning(fact["name"]), fact["value"],
            where=fact.get("where", ""),
        )
        for fact in journal.profiles.get(cell.id, {}).get("facts", ())
    ]  # fmt: skip


def epoch_metrics(cell: Cell, journal: JournalState, pair: Pair | None) -> list[MetricRow]:
    """Times, rates and counts of epochs that are not in the row of the cell."""
    samples, trials = journal.measured(cell, pair), journal.by_trial(cell, pair)
    if not samples:
        return []
    rows = [m.metric(cell.id, m.EPOCH, m.WALL, level(trials, lambda s: s["wall_s"]))]
    rows += _alone_times(cell, trials)
    rows += _extremes(cell, samples, journal.warm_ups(cell, pair))
    rows += _counts(cell, samples)
    rows += bound_rows(cell, journal, trials)
    if cell.goes_until > Until.SAMPLE:
        rows += rate_rows(cell, trials)
    return rows


def trials_value(trials: Sequence[Sequence[Record]], key: str) -> float | None:
    """Geometric mean over trials of the median of a time; None where no sample has it."""
    time = level(trials, lambda s: s.get(key))
    return time.value if time.n else None


def _alone_times(cell: Cell, trials: Sequence[Sequence[Record]]) -> list[MetricRow]:
    """Time of each phase without any other, averaged as the wall time."""
    times = {phase: trials_value(trials, f"{phase}_alone_s") for phase in PHASES}
    return [
        m.metric(cell.id, phase, m.ALONE, seconds, n=len(trials))
        for phase, seconds in times.items()
        if seconds is not None
    ]


def _extremes(cell: Cell, samples: Sequence[Record], warm_ups: Sequence[Record]) -> list[MetricRow]:
    """Outer time, longest warm-up, throttled epochs and peaks of memory."""
    warm_s = [s["wall_s"] for s in warm_ups]
    peaks = {peak: max(s[peak.name] for s in samples) for peak in (m.PEAK_ALLOC, m.PEAK_RSS)}
    values: list[tuple[m.Measure, float | None]] = [
        (m.OUTER, _median(samples, "outer_s")),
        (m.FIRST, max(warm_s, default=None)),
        (m.THROTTLED, sum(bool(s.get("throttle")) for s in samples)),
        *peaks.items(),
    ]
    return [
        m.metric(cell.id, m.EPOCH, measured, value, n=len(samples))
        for measured, value in values
        if value is not None
    ]


def _median(samples: Iterable[Record], key: str) -> float | None:
    values = [s[key] for s in samples if s.get(key) is not None]
    return statistics.median(values) if values else None


def _counts(cell: Cell, samples: Sequence[Record]) -> list[MetricRow]:
    """Hit ratio, and the median over epochs of everything that systems count."""
    epochs = [{tuple(c[:3]): c[3] for c in s.get("counts", ())} for s in samples]
    rows = []
    if ratios := [ratio for epoch in epochs if (ratio := hit_ratio(epoch)) is not None]:
        median = statistics.median(ratios)
        rows.append(m.metric(cell.id, "features", m.HIT_RATIO, median, n=len(ratios)))
    for stage, name, where in dict.fromkeys(key for epoch in epochs for key in epoch):
        # An epoch without this count has counted 0.
        value = statistics.median(epoch.get((stage, name, where), 0) for epoch in epochs)
        rows.append(m.metric(cell.id, stage, m.meaning(name), value, where=where, n=len(samples)))
    return rows


def hit_ratio(counts: Mapping[tuple[str, ...], float]) -> float | None:
    """Share of an epoch's rows from a cache, its own or another rank's; None without a cache.

    ``counts``: value by (stage, measure, where).
    """
    rows = {key[2]: n for key, n in counts.items() if key[:2] == ("features", FEATURE_BYTES.name)}
    if "cache" not in rows or not any(rows.values()):
        return None
    return (rows["cache"] + rows.get("peer", 0)) / sum(rows.values())


def cpu_metrics(cell: Cell, pair: Pair | None, journal: JournalState) -> list[MetricRow]:
    """CPU use of other programs and of the idle worker."""
    samples = journal.measured(cell, pair)
    return [
        m.metric(cell.id, m.EPOCH, measured, share(samples, key), n=len(samples))
        for measured, key in ((m.FOREIGN_CPU, "foreign_cpu_s"), (m.IDLE_CPU, "idle_cpu_s"))
        if samples
    ]
