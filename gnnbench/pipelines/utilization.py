"""What the spans of an epoch's ranks tell: each one's time by phase, and how uneven they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gnnbench.core.counters import IMBALANCE, RANK_BUSY, Counts
from gnnbench.measure.timeline import Span


def count_busy(counts: Counts, ranks: Iterable[Iterable[Span]]) -> None:
    """Note each rank's time in each phase."""
    for rank, spans in enumerate(ranks):
        for span in spans:
            counts.add("schedule", RANK_BUSY[span.phase], span.end - span.begin, str(rank))


def count_imbalance(
    counts: Counts, ranks: Sequence[Sequence[Span]], roles: Mapping[str, Collection[int]]
) -> None:
    """Note by role the slowest rank's sampling and memory IO over the mean of those of the role.

    Compute is not in it: who trains waits for the others' gradients there.
    """
    for role, members in roles.items():
        work = [
            sum(s.end - s.begin for s in ranks[rank] if s.phase != "compute") for rank in members
        ]
        if sum(work):
            counts.add("schedule", IMBALANCE, max(work) * len(work) / sum(work), role)
