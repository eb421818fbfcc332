"""Arithmetic on estimates. Bounds combine pessimistically, so that no interval is too narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gnnbench.schema import MetricRow
from gnnbench.statistics.estimates import NOTHING, Estimate, mean_interval


def exact(value: float) -> Estimate:
    """A counted number: its interval has no width."""
    return Estimate(value, value, value, 1)


def or_nan(value: float | None) -> float:
    """The value, or NaN for an empty field of a table."""
    return math.nan if value is None else value


def of_metric(row: MetricRow | None) -> Estimate:
    """The number of a row of ``metrics.csv``; ``NOTHING`` for None."""
    if row is None:
        return NOTHING
    return Estimate(row["value"], or_nan(row["low"]), or_nan(row["high"]), row["n"] or 1)


def quotient(a: Estimate, b: Estimate) -> Estimate:
    """``a / b`` of independent positive estimates."""
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low, min(a.n, b.n))


def combined(a: Estimate, b: Estimate, by: str) -> Estimate:
    """``a - b`` for ``by="difference"``, else ``a / b`` of independent estimates.

    A quotient whose divisor may be 0 or below is NaN.
    """
    n = min(a.n, b.n)
    if by == "difference":
        return Estimate(a.value - b.value, a.low - b.high, a.high - b.low, n)
    if not (b.value > 0 and (math.isnan(b.low) or b.low > 0)):
        return Estimate(math.nan, math.nan, math.nan, n)
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low, n)


def mean_over_cells(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of the values of cells, with Student's interval over the cells."""
    return mean_interval([estimate.value for estimate in estimates if estimate.n])
