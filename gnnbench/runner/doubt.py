"""What makes a pair of lives doubtful: causes outside the system, seen beside its times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnbench.runner.isolation import changes_doubt

Record = Mapping[str, Any]

IDLE_SHARE = 0.02  # of a core
FOREIGN_SHARE = 0.2  # cores
IDLE_TICKS_S = 0.03  # three clock ticks: less cannot be told from rounding


def share(samples: Sequence[Record], key: str) -> float:
    """CPU time over the length of the blocks; cores."""
    length = sum(s["block_s"] for s in samples)
    return float(sum(s[key] for s in samples) / length) if length else 0.0


def pair_doubt(samples: Sequence[Record]) -> str:
    """Why a pair of lives should not count, or "", from its measured samples of both sides."""
    if changed := changes_doubt([s for s in samples if "isolation" in s]):
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
        if foreign > FOREIGN_SHARE and sum(s["foreign_cpu_s"] for s in own) > IDLE_TICKS_S:
            return f"other programs used {foreign:.1f} cores meanwhile; close them"
        if slowed := [s["throttle"] for s in own if s.get("throttle")]:
            return f"the GPU was throttled ({slowed[-1]}); cool it or lock lower clocks"
    return ""
