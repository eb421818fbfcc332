"""The worker's clock held against the runner's own.

A worker tells how long its epoch was, and what runs in it may bend the clock that it tells this by.
The runner notes when it gave the command and when the word of its end came: between these lies the
epoch and some waking up, nothing else. Every time that is judged is one of the epoch's parts.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

SHARE = 0.02  # of the epoch
SLACK_S = 0.018  # a busy machine, or a thread of Python that keeps the word of the end waiting
DOUBT_SLACK_S = 0.004


def _gaps(samples: Sequence[Record]) -> tuple[list[float], float]:
    """By how much the runner's times exceed the worker's, ascending, and the median of its own; s.

    Samples of runs that did not note them are left out.
    """
    known = [s for s in samples if s.get("parent_s")]
    usual = statistics.median(s["parent_s"] for s in known) if known else 0.0
    return sorted(s["parent_s"] - s["wall_s"] for s in known), usual


def parent_fault(samples: Sequence[Record]) -> str:
    """Whether the worker tells other times than have passed, over the measured epochs.

    Three quarters of the epochs must show it: on a busy machine single ones do by chance.
    """
    gaps, usual = _gaps(samples)
    if not gaps:
        return ""
    limit = max(SHARE * usual, SLACK_S)
    if gaps[len(gaps) // 4] <= limit and gaps[-1 - len(gaps) // 4] >= -SHARE * usual:
        return ""
    told = usual - statistics.median(gaps)
    return (
        f"its epochs took {usual:.3g} s by the runner's clock where it tells {told:.3g} s: its"
        " clock is not right"
    )


def parent_doubt(samples: Sequence[Record]) -> str:
    """Like ``parent_fault``, of a difference that may be chance."""
    gaps, usual = _gaps(samples)
    gap = statistics.median(gaps) if gaps else 0.0
    if gap <= max(SHARE * usual, DOUBT_SLACK_S):
        return ""
    return f"its epochs were {gap:.3g} s of {usual:.3g} s longer by the runner's clock"
