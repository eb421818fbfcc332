"""Counts of other processes, each rank's time by phase, and how uneven these times are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gnnbench.core.counters import IMBALANCE, METRICS, RANK_BUSY, Counts
from gnnbench.measure.timeline import Span


def add_rows(counts: Counts, rows: Iterable[list[str | float]]) -> None:
    """Add the counts of another process, rows as ``Counts.rows`` returns them."""
    for stage, name, where, value in rows:
        assert not isinstance(value, str)
        counts.add(str(stage), METRICS[str(name)], value, str(where))


def count_busy(counts: Counts, spans_by_rank: Iterable[Iterable[Span]]) -> None:
    """Count each rank's time in each phase, in seconds."""
    for rank, spans in enumerate(spans_by_rank):
        for span in spans:
            counts.add("schedule", RANK_BUSY[span.phase], span.end - span.begin, str(rank))


def count_imbalance(
    counts: Counts, spans_by_rank: Sequence[Sequence[Span]], roles: Mapping[str, Collection[int]]
) -> None:
    """Count by role the slowest rank's time for sampling and memory IO over the role's mean.

    Compute is left out: in that phase ranks wait for the gradients of others.
    """
    for role, members in roles.items():
        work_s = [
            sum(s.end - s.begin for s in spans_by_rank[rank] if s.phase != "compute")
            for rank in members
        ]
        if sum(work_s):
            counts.add("schedule", IMBALANCE, max(work_s) * len(work_s) / sum(work_s), role)
