"""Medians with bootstrap intervals; every interval is reproducible from its seed.

Percentile bootstrap after Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A median with its 95 % interval; the interval is NaN for fewer than two samples."""

    median: float
    low: float
    high: float
    n: int

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the median; infinite where there is no interval."""
        if math.isnan(self.low) or self.median == 0:
            return math.inf
        return (self.high - self.low) / 2 / abs(self.median)


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def median_interval(samples: Sequence[float], seed: int = 0, level: float = 0.95) -> Estimate:
    """Median of ``samples`` and its percentile bootstrap interval."""
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


def paired_ratio(reference: Sequence[float], system: Sequence[float], seed: int = 0) -> Estimate:
    """Median of ``reference[i] / system[i]`` over paired rounds: above 1 the system is faster.

    Rounds in which either value is not positive are left out.
    """
    if len(reference) != len(system):
        raise ValueError("paired samples must have equal lengths")
    ratios = [a / b for a, b in zip(reference, system, strict=True) if a > 0 and b > 0]
    return median_interval(ratios, seed)


def ratio_of_medians(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Estimate:
    """Median of ``first`` over median of ``second``: above 1 the second is faster.

    For samples that were not taken in turn (two runs): each side is resampled by itself. ``n`` is
    the smaller number of samples; with fewer than two on a side there is no interval.
    """
    a, b = (np.asarray(s, dtype=np.float64) for s in (first, second))
    n = min(a.size, b.size)
    if n == 0:
        return NOTHING
    middle = float(np.median(a) / np.median(b))
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    draw = np.random.default_rng(seed).integers
    top, bottom = (np.median(s[draw(0, s.size, (RESAMPLES, s.size))], axis=1) for s in (a, b))
    low, high = np.quantile(top / bottom, [0.025, 0.975])
    return Estimate(middle, float(low), float(high), n)


def verdict(ratio: Estimate, floor: float = 0.0) -> str:
    """``faster``, ``slower`` or ``tie``; empty without an interval.

    A tie holds 1 in its interval, or reaches into the noise ``floor`` around it: the band from
    1 - floor to 1 / (1 - floor), which is the same seen from either side.
    """
    if ratio.n < 2 or math.isnan(ratio.low):
        return ""
    if ratio.low > 1 / (1 - floor):
        return "faster"
    if ratio.high < 1 - floor:
        return "slower"
    return "tie"
