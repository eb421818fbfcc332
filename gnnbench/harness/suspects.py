"""Timing that looks wrong: a doubt at first, a fault when it repeats on a quiet machine.

Other programs can cause whatever a clock shows. So a pair of trials with a suspect is void and
measured again; the same suspect in the next pair, with the machine quiet, is a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gnnbench.harness import clocks, doubt

if TYPE_CHECKING:
    from gnnbench.core.cell import Cell

Record = Mapping[str, Any]

CLOCK, QUIET, PROBE = "clock", "quiet", "probe"
# Void pairs of a comparison: these, and this share of the pairs before the first look.
MOST_VOID = 2
VOID_SHARE = 0.4


class Suspect(NamedTuple):
    """What looks wrong in a worker's times: ``kind`` is CLOCK, QUIET or PROBE."""

    kind: str
    text: str


def of_clocks(samples: Sequence[Record]) -> Suspect | None:
    """What the clocks show in a worker's measured epochs."""
    if text := clocks.parent_fault(samples):
        return Suspect(CLOCK, text)
    if text := clocks.quiet_fault(samples):
        return Suspect(QUIET, text)
    return None


def confirmed(
    suspect: Suspect,
    cell: Cell,
    last: Record | None,
    samples: Sequence[Record],
    free_cores: int,
    probe: Record | None = None,
) -> str:
    """The fault, or "" where it is only a doubt yet.

    ``last`` is the record of the pair before; ``samples`` are the cell's in this pair, measured
    ones and warm-ups. ``probe`` has the CPU use while phases were run one by one.
    """
    before = (last or {}).get("suspects", {}).get(cell.id)
    measured = [s for s in samples if not s["warmup"]]
    if before != suspect.kind or doubt.stop_doubt(samples):
        return ""
    if doubt.disturbed(measured, free_cores) or doubt.waited(measured):
        return ""
    if probe is not None and doubt.disturbed([probe], free_cores):
        return ""
    return f"{suspect.text} (so again in a second pair, on a quiet machine)"


def most_void(looks: Sequence[int], equals: bool) -> int:
    """Void pairs that a comparison may have; one of ``equals``, a calibration, as many as pairs."""
    return looks[-1] if equals else max(MOST_VOID, int(VOID_SHARE * looks[0]))
