"""The verdict of one interval against the range that a claim allows."""

from __future__ import annotations

import math

from gnnbench.reproduction.claim import Bounds
from gnnbench.reproduction.verdict import HOLDS, REFUTED, SHAPE, UNCLEAR
from gnnbench.statistics.estimates import Estimate
from gnnbench.statistics.stopping_rule import Rule

OUTSIDE = "the number is outside the claimed range"
OTHER_SIZE = "the order agrees, the size does not"
SINGLE = "a single epoch or process has no interval; two or more are needed"
ON_A_BOUND = "the interval contains a bound of the claimed range"


def judge_interval(
    estimate: Estimate,
    expected: Bounds,
    shape: Bounds | None,
    doubt: str = "",
    is_time: bool = False,
) -> tuple[str, str]:
    """Verdict and reason. ``shape`` is the range in which the order alone is right, if any.

    A ratio of times (``is_time``) is above or below 1 only if the suite's own rule says so.
    """
    if doubt:
        return UNCLEAR, doubt
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return UNCLEAR, SINGLE
    if _is_within(estimate, expected, is_time):
        return HOLDS, ""
    if _is_outside(estimate, expected, is_time):
        if shape is None or _is_outside(estimate, shape, is_time):
            return REFUTED, OUTSIDE
        if _is_within(estimate, shape, is_time):
            return SHAPE, OTHER_SIZE
    return UNCLEAR, ON_A_BOUND


def _is_within(estimate: Estimate, bounds: Bounds, is_time: bool) -> bool:
    low, high = bounds
    if is_time and low == 1 and _speed(estimate) != "faster":
        return False
    if is_time and high == 1 and _speed(estimate) != "slower":
        return False
    return low <= estimate.low and estimate.high <= high


def _is_outside(estimate: Estimate, bounds: Bounds, is_time: bool) -> bool:
    low, high = bounds
    if is_time and low == 1 and estimate.high < 1:
        return _speed(estimate) == "slower"
    if is_time and high == 1 and estimate.low > 1:
        return _speed(estimate) == "faster"
    return estimate.high < low or estimate.low > high


def _speed(estimate: Estimate) -> str:
    """The verdict of the stopping rule on a ratio of times: ``faster``, ``slower``, ``same``..."""
    value, low, high = (math.log(v) for v in (estimate.value, estimate.low, estimate.high))
    return Rule().classify(Estimate(value, low, high, estimate.n))
