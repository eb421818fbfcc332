"""Compare the phase times that an epoch reports with the same phases run one by one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnnbench.core import registry
from gnnbench.core.cell import PHASES, Cell
from gnnbench.core.counters import RANK_BUSY

if TYPE_CHECKING:
    from gnnbench.schema.samples import EpochSample

RANKS = ("data-parallel", "factored")  # schedules of several processes
SHARE = 0.5  # of the phase's time when run by itself
SLACK_S = 0.0002  # an epoch: the clock itself
SLOWEST = 0.5  # the machine itself may have been so much slower when it was probed


def shared_by_ranks(cell: Cell) -> bool:
    """Return whether several of gnnbench's processes share a cell's batches; one is probed."""
    return cell.composed and cell.stage_name(registry.SCHEDULE) in RANKS


def probe_fault(
    samples: Sequence[EpochSample], alone: Mapping[str, float], ranks: bool = False
) -> str:
    """Return which phase an epoch reports as less than half of its time when run by itself, or "".

    ``alone`` are seconds per batch by phase, empty where no phase was probed. Where phases and idle
    time of an epoch took less than the phases one by one, the machine was slower during the probe,
    by at most a half. Wall time would not show this, because phases may overlap. ``ranks``:
    several processes share the batches; their times in a phase are summed.
    """
    if not alone or not samples:
        return ""
    spent = statistics.median(
        (s.idle_s + sum(_phase_seconds(s, phase, ranks) for phase in PHASES)) / s.batches
        for s in samples
    )
    slowdown = min(max(spent / sum(alone.values()), SLOWEST), 1.0)
    for phase, expected in alone.items():
        reported = statistics.median(_phase_seconds(s, phase, ranks) / s.batches for s in samples)
        batches = statistics.median(s.batches for s in samples)
        too_short = reported < SHARE * slowdown * expected
        if too_short and (expected - reported) * batches > SLACK_S:
            return (
                f"its epochs report {reported:.3g} s of '{phase}' a batch where that takes"
                f" {expected:.3g} s by itself: the phase is booked elsewhere, or not done"
            )
    return ""


def _phase_seconds(sample: EpochSample, phase: str, ranks: bool) -> float:
    """Return the seconds of a phase in an epoch, summed over ranks where there are several."""
    if not ranks:
        return sample.time_s(phase) or 0.0
    name = RANK_BUSY[phase].name
    return sum(count.value for count in sample.counts if count.name == name)
