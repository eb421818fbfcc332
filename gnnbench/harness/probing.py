"""The phases as an epoch tells them, held against the same phases run one by one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.core import registry
from gnnbench.core.cell import PHASES, Cell
from gnnbench.core.counters import RANK_BUSY

Record = Mapping[str, Any]

RANKS = ("data-parallel", "factored")  # schedules of several processes
SHARE = 0.5  # of what the phase takes by itself
SLACK_S = 0.0005  # an epoch: the clock itself
SLOWEST = 0.5  # the machine itself may have been so much slower when it was probed


def shared_by_ranks(cell: Cell) -> bool:
    """Whether several processes of ours share a cell's batches, of which one is probed."""
    named = cell.recipe.get(registry.SCHEDULE, {}).get("name")
    return cell.composed and named in RANKS


def probe_fault(samples: Sequence[Record], alone: Mapping[str, float], ranks: bool = False) -> str:
    """Whether a phase is told at less than half of what it takes by itself.

    ``alone`` are seconds per batch by phase, empty where nobody could look. Where the epoch's
    phases and what lay between them took less than the phases one by one, the machine was slower
    meanwhile, by up to a half. The wall time would not tell: phases may lie beside one another.
    ``ranks``: several processes share the batches, whose times in a phase are added up.
    """
    if not alone or not samples:
        return ""
    spent = statistics.median(
        (s["idle_s"] + sum(_told(s, phase, ranks) for phase in PHASES)) / s["batches"]
        for s in samples
    )
    slower = min(max(spent / sum(alone.values()), SLOWEST), 1.0)
    for phase, right in alone.items():
        told = statistics.median(_told(s, phase, ranks) / s["batches"] for s in samples)
        count = statistics.median(s["batches"] for s in samples)
        if told < SHARE * slower * right and (right - told) * count > SLACK_S:
            return (
                f"its epochs tell {told:.3g} s of '{phase}' a batch where that takes {right:.3g} s"
                " by itself: the phase is booked elsewhere, or not done"
            )
    return ""


def _told(sample: Record, phase: str, ranks: bool) -> float:
    """Seconds of a phase in an epoch, of all ranks together where there are several."""
    if not ranks:
        return sample[f"{phase}_time_s"] or 0.0
    name = RANK_BUSY[phase].name
    return sum(value for _, found, _, value in sample.get("counts") or () if found == name)
