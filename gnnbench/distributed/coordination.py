"""Work of rank 0 for the ranks of one schedule, in addition to that of the launcher."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from gnnbench.core.counters import Counts
from gnnbench.distributed.merge import MergedEpoch, RankEpoch, merge_ranks
from gnnbench.distributed.rank_messages import JoinGroup, PhaseTimes, expect
from gnnbench.distributed.rank_monitor import RankLoss
from gnnbench.measure.timeline import Span
from gnnbench.pipelines.utilization import count_busy, count_imbalance

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.core.cell import Until
    from gnnbench.pipelines.schedule import Stages


class Coordination:
    """Of ranks that share every batch; none of it needs more than the launcher."""

    def sockets(self, rank: int) -> dict[str, socket.socket]:
        """Return additional sockets for the process of a rank, by name."""
        return {}

    def join_message(self, measure: Callable[[int], PhaseTimes]) -> JoinGroup:
        """Return the message by which ranks join, all of which are built.

        ``measure`` has one rank run an epoch alone and returns its times.
        """
        return JoinGroup()

    def epoch(
        self, batches: list[Tensor], stages: Stages, until: Until, records_edges: bool
    ) -> AbstractContextManager[None]:
        """Return a context that surrounds rank 0's part of an epoch."""
        return nullcontext()

    def merge(self, epoch: int, results: Sequence[object]) -> MergedEpoch:
        """Merge the results of all ranks for an epoch."""
        return merge_ranks(expect(RankEpoch, results))

    def count(self, counts: Counts, spans_by_rank: list[list[Span]]) -> None:
        """Count the ranks' times by phase, and how uneven they are."""
        count_busy(counts, spans_by_rank)
        count_imbalance(counts, spans_by_rank, {"": range(len(spans_by_rank))})

    def on_loss(self, loss: RankLoss) -> None:
        """Fail requests of ranks that wait, on the monitor's thread."""

    def close(self) -> None:
        """End threads and free memory."""
