"""Where an interval lies with respect to the range that a claim allows."""

from __future__ import annotations

import math

from gnnbench.reproduction.claim import Bounds
from gnnbench.reproduction.verdict import HOLDS, REFUTED, SHAPE, UNCLEAR
from gnnbench.statistics.estimates import Estimate
from gnnbench.statistics.stopping_rule import Rule


def judge_interval(
    found: Estimate, expected: Bounds, shape: Bounds | None, doubt: str = "", time: bool = False
) -> tuple[str, str]:
    """Where an interval lies, and why it tells nothing where it does not."""
    if doubt:
        return UNCLEAR, doubt
    if math.isnan(found.low) or math.isnan(found.high):
        return UNCLEAR, "a single epoch or process has no interval"
    if _within(found, expected, time):
        return HOLDS, ""
    if _beyond(found, expected, time):
        if shape is None or _beyond(found, shape, time):
            return REFUTED, "outside the claimed range"
        if _within(found, shape, time):
            return SHAPE, "the order agrees, the size does not"
    return UNCLEAR, "the interval contains a bound of the claimed range"


def _within(found: Estimate, bounds: Bounds, time: bool) -> bool:
    low, high = bounds
    if time and 1.0 in bounds:
        return (low != 1 or _called(found) == "faster") and (
            high != 1 or _called(found) == "slower"
        ) and low <= found.low and found.high <= high  # fmt: skip
    return low <= found.low and found.high <= high


def _beyond(found: Estimate, bounds: Bounds, time: bool) -> bool:
    low, high = bounds
    if time and low == 1 and found.high < 1:
        return _called(found) == "slower"
    if time and high == 1 and found.low > 1:
        return _called(found) == "faster"
    return found.high < low or found.low > high


def _called(found: Estimate) -> str:
    """The suite's own verdict of a ratio of times: equals are neither above 1 nor below."""
    value, low, high = (math.log(v) for v in (found.value, found.low, found.high))
    return Rule().called_by(Estimate(value, low, high, found.n))
