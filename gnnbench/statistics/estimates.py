"""Estimates with intervals: Student's t over independent samples, Welch's t for two runs.

Times and ratios are worked with as logarithms, so that a / b and b / a are judged alike and the
estimate of a ratio is a geometric mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; the interval is NaN for fewer than two samples."""

    value: float
    low: float
    high: float
    n: int

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the value; infinite where there is no interval."""
        if math.isnan(self.low) or self.value == 0:
            return math.inf
        return (self.high - self.low) / 2 / abs(self.value)


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def t_quantile(level: float, degrees: float) -> float:
    """Half the width of a two-sided interval of Student's t, in standard errors."""
    return float(stdtrit(degrees, (1 + level) / 2))


def mean_interval(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Mean of independent ``values`` and its interval by Student's t."""
    n = len(values)
    if n == 0:
        return NOTHING
    middle = float(np.mean(values))
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    half = t_quantile(level, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Estimate(middle, middle - half, middle + half, n)


def exponential(found: Estimate) -> Estimate:
    """An estimate of a logarithm as one of the number itself."""
    return Estimate(math.exp(found.value), math.exp(found.low), math.exp(found.high), found.n)


def geometric_interval(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Geometric mean of positive ``values`` and its interval, by Student's t of the logarithms.

    Values at or below 0 have no logarithm: then the mean, without an interval.
    """
    if not len(values):
        return NOTHING
    if min(values) <= 0:
        return Estimate(float(np.mean(values)), math.nan, math.nan, len(values))
    return exponential(mean_interval([math.log(v) for v in values], level))


def welch(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Estimate:
    """Mean of ``second`` less mean of ``first`` with Welch's interval; ``n`` is the smaller number.

    Welch, Biometrika 34 (1947): the two need not spread alike.
    """
    n = min(len(first), len(second))
    if n == 0:
        return NOTHING
    middle = float(np.mean(second) - np.mean(first))
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    parts = [float(np.var(s, ddof=1)) / len(s) for s in (first, second)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Estimate(middle, middle, middle, n)
    shares = sum(p**2 / (len(s) - 1) for p, s in zip(parts, (first, second), strict=True))
    half = t_quantile(level, sum(parts) ** 2 / shares) * error
    return Estimate(middle, middle - half, middle + half, n)


def median_interval(samples: Sequence[float], seed: int = 0, level: float = 0.95) -> Estimate:
    """Median of ``samples`` and its percentile bootstrap interval, reproducible from its seed.

    Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13. What runs of version 1
    were judged by; of few samples the interval is too narrow.
    """
    values = np.asarray(samples, dtype=np.float64)
    n = values.size
    if n == 0:
        return NOTHING
    middle = float(np.median(values))
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    draws = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
    medians = np.median(values[draws], axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Estimate(middle, float(low), float(high), n)
