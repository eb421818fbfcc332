"""Measures of the stages inside a sampler, from ``stages.csv``: times by hop, and their ratios.

Times are seconds per batch: between events on the GPU's stream, or by the host's clock on a CPU.
Each function returns ``NOTHING`` for a cell without the number.
"""

from __future__ import annotations

from itertools import pairwise

from gnnbench.reproduction.evidence import MeasureFunction, RunEvidence
from gnnbench.reproduction.interval_arithmetic import or_nan, quotient
from gnnbench.schema import CellRow, StageRow
from gnnbench.statistics.estimates import NOTHING, Estimate


def stage_time(stage: str) -> MeasureFunction:
    """Time of a stage, summed over hops."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        hops = _hop_times(evidence, row, stage)
        if not hops:
            return NOTHING
        value, low, high = (sum(getattr(h, e) for h in hops) for e in ("value", "low", "high"))
        return Estimate(value, low, high, min(h.n for h in hops))

    return measure


def stage_spread(stage: str) -> MeasureFunction:
    """Time of the slowest hop / time of the fastest hop."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        hops = _hop_times(evidence, row, stage)
        if len(hops) < 2:
            return NOTHING
        return quotient(max(hops, key=lambda h: h.value), min(hops, key=lambda h: h.value))

    return measure


def stage_growth(stage: str) -> MeasureFunction:
    """Smallest ratio of a hop's time to that of the hop before it."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        return _least_growth(_hop_times(evidence, row, stage))

    return measure


def prepare_over_pick(hop: int) -> MeasureFunction:
    """Time of preparing a hop / time of picking its neighbours."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        prepare, pick = (_hop_times(evidence, row, stage) for stage in ("prepare", "pick"))
        if min(len(prepare), len(pick)) < hop:
            return NOTHING
        return quotient(prepare[hop - 1], pick[hop - 1])

    return measure


def pick_rate_growth(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Smallest ratio of a hop's rate (nodes picked per second) to that of the hop before it."""
    times = _hop_times(evidence, row, "pick")
    nodes = [r["nodes"] for r in _stage_rows(evidence, row, "pick")]
    if len(times) != len(nodes) or not all(nodes):
        return NOTHING
    rates = [
        Estimate(n / t.value, n / t.high, n / t.low, t.n) for n, t in zip(nodes, times, strict=True)
    ]
    return _least_growth(rates)


def _least_growth(hops: list[Estimate]) -> Estimate:
    """The least growth, with the least ends of all intervals: any hop may have the true minimum."""
    ratios = [quotient(later, earlier) for earlier, later in pairwise(hops)]
    if not ratios:
        return NOTHING
    value, low, high = (min(getattr(r, end) for r in ratios) for end in ("value", "low", "high"))
    return Estimate(value, low, high, min(r.n for r in ratios))


def _hop_times(evidence: RunEvidence, row: CellRow, stage: str) -> list[Estimate]:
    """Time of each hop, from the seeds outwards. A single profiling run has no interval."""
    clock = "device" if row["device"] == "cuda" else "host"
    return [
        Estimate(
            r[f"{clock}_s"], or_nan(r[f"{clock}_low_s"]), or_nan(r[f"{clock}_high_s"]),
            r["looks"] or 1,
        )
        for r in _stage_rows(evidence, row, stage)
        if r[f"{clock}_s"]
    ]  # fmt: skip


def _stage_rows(evidence: RunEvidence, row: CellRow, stage: str) -> list[StageRow]:
    """Rows of ``stages.csv`` of a stage, from the seeds outwards."""
    rows = [r for r in evidence.run.stages if (r["id"], r["stage"]) == (row["id"], stage)]
    return sorted(rows, key=lambda r: r["hop"] or 0)
