"""Measures of kernels: rates against the machine's peaks, and launches per batch.

They read ``roofline.csv`` and ``kernels.csv``. Each function returns ``NOTHING`` for a cell without
the number.
"""

from __future__ import annotations

from typing import Literal

from gnnbench.reproduction.evidence import MeasureFunction, RunEvidence
from gnnbench.reproduction.interval_arithmetic import exact, or_nan
from gnnbench.schema import CellRow, RooflineRow
from gnnbench.statistics.estimates import NOTHING, Estimate


def aggregate_rate(direction: str) -> MeasureFunction:
    """Rate of a batch's aggregations of all layers, ``forward`` or ``backward``; flop/s.

    Operations of all / time of all. The bounds are those of all layers at once.
    """

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        layers = [
            (r["flops"], Estimate(r["value"], or_nan(r["low"]), or_nan(r["high"]), r["n"] or 1))
            for r in _kernels(evidence, row)
            if r["direction"] == direction and r["value"] is not None and r["flops"]
        ]
        if not layers:
            return NOTHING
        flops = sum(count for count, _ in layers)
        value, low, high = (
            flops / sum(count / getattr(rate, end) for count, rate in layers)
            for end in ("value", "low", "high")
        )
        return Estimate(value, low, high, min(rate.n for _, rate in layers))

    return measure


def of_ceiling(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Rate / measured peak, for the kernel of the cell that comes nearest to its peak."""
    shares = [
        Estimate(
            r["of_ceiling"], or_nan(r["of_ceiling_low"]), or_nan(r["of_ceiling_high"]), r["n"] or 1
        )
        for r in _kernels(evidence, row)
        if r["of_ceiling"] is not None
    ]
    return _fastest(shares)


def of_peak(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Rate of the cell's fastest forward aggregation / peak rate of fused multiply-adds.

    The kernels of the paper multiply each element by a weight and add it, which ncu counts as two
    operations. ``roofline.csv`` has one for edges without weights.
    """
    peaks = [
        r
        for r in evidence.run.roofline
        if (r["kind"], r["name"], r["device"]) == ("ceiling", "fma", row["device"])
    ]
    rates = _rates(evidence, row, "forward")
    if not peaks or not rates:
        return NOTHING
    best, peak = _fastest(rates), max(peaks, key=lambda r: r["value"])
    low, high = best.low / or_nan(peak["high"]), best.high / or_nan(peak["low"])
    return Estimate(2 * best.value / peak["value"], 2 * low, 2 * high, best.n)


def hit_rate_gap(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Hit rate of the L2 cache less that of the L1, in the cell's fastest forward aggregation.

    Exact: ncu counts one launch of the kernel, with empty caches.
    """
    counted = [
        (r["value"], r["l2_hit"] - r["l1_hit"])
        for r in _kernels(evidence, row)
        if r["direction"] == "forward" and None not in (r["value"], r["l1_hit"], r["l2_hit"])
    ]
    return exact(max(counted)[1]) if counted else NOTHING


def sampler_throughput(of: Literal["compute", "memory"]) -> MeasureFunction:
    """Share of the GPU's peak throughput that a sampler's longest kernel reaches.

    Exact: ncu counts one batch, with empty caches. It reports 0 for a kernel that it did not count.
    """

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        for r in evidence.run.roofline:
            if (r["kind"], r["id"], r["name"]) == ("kernel", row["id"], "sample"):
                share = r[f"{of}_throughput"]
                return exact(share) if share else NOTHING
        return NOTHING

    return measure


def level_ratio(faster: str, slower: str) -> MeasureFunction:
    """Read rate of one memory level / read rate of another."""

    def measure(evidence: RunEvidence, row: CellRow) -> Estimate:
        rates = {
            r["level"]: r
            for r in evidence.run.roofline
            if (r["kind"], r["name"], r["device"]) == ("ceiling", "read", row["device"])
        }
        if not {faster, slower} <= rates.keys():
            return NOTHING
        upper, lower = rates[faster], rates[slower]
        low = or_nan(upper["low"]) / or_nan(lower["high"])
        high = or_nan(upper["high"]) / or_nan(lower["low"])
        return Estimate(upper["value"] / lower["value"], low, high, upper["n"] or 1)

    return measure


def _kernels(evidence: RunEvidence, row: CellRow) -> list[RooflineRow]:
    """Roofline rows of a cell's kernels that have arithmetic operations."""
    wanted = ("kernel", row["id"], "flop/s")
    return [r for r in evidence.run.roofline if (r["kind"], r["id"], r["unit"]) == wanted]


def _rates(evidence: RunEvidence, row: CellRow, direction: str) -> list[Estimate]:
    return [
        Estimate(r["value"], or_nan(r["low"]), or_nan(r["high"]), r["n"] or 1)
        for r in _kernels(evidence, row)
        if r["direction"] == direction and r["value"] is not None
    ]


def _fastest(estimates: list[Estimate]) -> Estimate:
    return max(estimates, key=lambda estimate: estimate.value, default=NOTHING)


def launches(evidence: RunEvidence, row: CellRow) -> Estimate:
    """Launches per batch of the kernel with the most GPU time (in a sampler, the one that draws).

    Exact: every batch has the same number of launches.
    """
    kernels = [k for k in evidence.run.kernels if k["id"] == row["id"] and k["device_s"]]
    if not kernels:
        return NOTHING
    return exact(float(max(kernels, key=lambda k: float(k["device_s"]))["calls"]))


def launches_per_hop(evidence: RunEvidence, row: CellRow) -> Estimate:
    """``launches`` / number of hops."""
    per_batch = launches(evidence, row)
    if not per_batch.n:
        return NOTHING
    return exact(per_batch.value / (row["fanouts"].count("/") + 1))
