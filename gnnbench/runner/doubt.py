"""What makes a pair of lives doubtful, from without, and a cell's own times, from within."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnnbench.runner import audit, clocks, isolation

if TYPE_CHECKING:
    from gnnbench.cell import Cell
    from gnnbench.runner.ledger import Ledger
    from gnnbench.runner.plan import Pair

Record = Mapping[str, Any]

IDLE_SHARE = 0.02  # of a core
FOREIGN_SHARE = 0.2  # cores
FREE_SHARE = 0.05  # and of each core that the worker leaves free, where others are in nobody's way
IDLE_TICKS_S = 0.03  # three clock ticks: less cannot be told from rounding
# Of the worker's own CPU time: what all cores did is sampled by ticks, what a process used is not,
# and work in short bursts is counted by the one at up to a tenth more or less than by the other.
SAMPLED = 0.1


def share(samples: Sequence[Record], key: str) -> float:
    """CPU time over the length of the blocks; cores."""
    length = sum(s["block_s"] for s in samples)
    return float(sum(s[key] for s in samples) / length) if length else 0.0


def pair_doubt(samples: Sequence[Record], free_cores: int = 0) -> str:
    """Why a pair of lives should not count, or "", from its measured samples of both sides.

    Causes are outside the system, seen beside its times. ``free_cores``: those that the workers
    have no threads for.
    """
    if changed := isolation.changes_doubt([s for s in samples if "isolation" in s]):
        return changed
    for ident in dict.fromkeys(s["id"] for s in samples):
        own = [s for s in samples if s["id"] == ident]
        busy = sum(s["idle_cpu_s"] for s in own)
        if busy > IDLE_TICKS_S and share(own, "idle_cpu_s") > IDLE_SHARE:
            others = [s["system"] for s in samples if s["id"] != ident] or ["the other"]
            return (
                f"the worker of '{others[0]}' used {share(own, 'idle_cpu_s'):.0%} of a core while"
                f" '{own[0]['system']}' was measured"
            )
        foreign = share(own, "foreign_cpu_s")
        slack = IDLE_TICKS_S + SAMPLED * sum(s.get("cpu_s", 0.0) for s in own)
        allowed = FOREIGN_SHARE + FREE_SHARE * free_cores
        if foreign > allowed and sum(s["foreign_cpu_s"] for s in own) > slack:
            return f"other programs used {foreign:.1f} cores meanwhile; close them"
        if slowed := [s["throttle"] for s in own if s.get("throttle")]:
            return f"the GPU was throttled ({slowed[-1]}); cool it or lock lower clocks"
    return ""


def own_doubts(cell: Cell, pair: Pair | None, ledger: Ledger) -> list[str]:
    """Doubts of how a cell behaved in the lives of one comparison that count, or in all."""
    own = ledger.measured(cell, pair)
    found = [
        audit.first_epoch_doubt(ledger.warm_ups(cell, pair), own),
        clocks.quiet_doubt(own),
        clocks.parent_doubt(own),
        isolation.rest_doubt(own),
        audit.idle_doubt(cell, own),
        audit.after_doubt(cell, own),
    ]
    return [text for text in found if text]
