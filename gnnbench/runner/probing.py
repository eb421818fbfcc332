"""The phases as an epoch tells them, held against the same phases run one by one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.cell import PHASES

Record = Mapping[str, Any]

SHARE = 0.5  # of what the phase takes by itself
SLACK_S = 0.0005  # an epoch: the clock itself
SLOWEST = 0.5  # the machine itself may have been so much slower when it was probed


def probe_fault(samples: Sequence[Record], alone: Mapping[str, float]) -> str:
    """Whether a phase is told at less than half of what it takes by itself.

    ``alone`` are seconds per batch by phase, empty where nobody could look. Where the epoch's
    phases and what lay between them took less than the phases one by one, the machine was slower
    meanwhile, by up to a half. The wall time would not tell: phases may lie beside one another.
    """
    if not alone or not samples:
        return ""
    spent = statistics.median(_spent(s) / s["batches"] for s in samples)
    slower = min(max(spent / sum(alone.values()), SLOWEST), 1.0)
    for phase, right in alone.items():
        told = statistics.median((s[f"{phase}_time_s"] or 0.0) / s["batches"] for s in samples)
        count = statistics.median(s["batches"] for s in samples)
        if told < SHARE * slower * right and (right - told) * count > SLACK_S:
            return (
                f"its epochs tell {told:.3g} s of '{phase}' a batch where that takes {right:.3g} s"
                " by itself: the phase is booked elsewhere, or not done"
            )
    return ""


def _spent(sample: Record) -> float:
    """Seconds of all phases of an epoch, and of none."""
    return float(sum(sample[f"{phase}_time_s"] or 0.0 for phase in PHASES) + sample["idle_s"])
