"""Timing anomalies: a doubt at first, a fault when they repeat on an idle machine.

Other programs can cause whatever a clock shows. So a trial with an anomaly is void and repeated;
the same anomaly in the next trial, with the machine idle, is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gnnbench.harness import clocks, doubt

if TYPE_CHECKING:
    from gnnbench.core.cell import Cell
    from gnnbench.schema.events import TrialEvent
    from gnnbench.schema.samples import EpochSample

CLOCK, QUIET, PROBE = "clock", "quiet", "probe"
# Void trials of a comparison: these, and this share of the trials before the first interim test.
MAX_VOID = 2
VOID_SHARE = 0.4


class TimingAnomaly(NamedTuple):
    """An implausible time of a worker: ``kind`` is CLOCK, QUIET or PROBE."""

    kind: str
    text: str


def of_clocks(samples: Sequence[EpochSample]) -> TimingAnomaly | None:
    """Return the anomaly that clocks show in a worker's measured epochs."""
    if text := clocks.parent_fault(samples):
        return TimingAnomaly(CLOCK, text)
    if text := clocks.quiescence_fault(samples):
        return TimingAnomaly(QUIET, text)
    return None


def confirmed(
    anomaly: TimingAnomaly,
    cell: Cell,
    previous: TrialEvent | None,
    samples: Sequence[EpochSample],
    free_cores: int,
    probe: EpochSample | None = None,
) -> str:
    """Return the fault, or "" where the anomaly is only a doubt so far.

    ``previous`` is the record of the trial before; ``samples`` are the cell's in this trial, with
    warm-ups. ``probe`` has the CPU use while phases were run one by one.
    """
    before = previous.get("suspects", {}).get(cell.id) if previous else None
    measured = [s for s in samples if not s.warmup]
    if before != anomaly.kind or doubt.stop_doubt(samples):
        return ""
    if doubt.disturbed(measured, free_cores) or doubt.waited(measured):
        return ""
    if probe is not None and doubt.disturbed([probe], free_cores):
        return ""
    return f"{anomaly.text} (so again in a second pair, on a quiet machine)"


def max_void_trials(analyses: Sequence[int], is_calibration: bool) -> int:
    """Return how many trials of a comparison may be void; of a calibration, as many as it has.

    ``analyses`` are the numbers of trials after which the stopping rule tests.
    """
    return analyses[-1] if is_calibration else max(MAX_VOID, int(VOID_SHARE * analyses[0]))
