"""``order=greedy``: reorders a window of batches so that consecutive batches share nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.counters import REORDER_TIME, REORDERED
from gnnbench.core.stage import option
from gnnbench.pipelines.order import OrderSpec, Permuted

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch

FIRST, CARRIED = "first", "carried"


@dataclass(frozen=True)
class Greedy(OrderSpec):
    """Greedy Reorder (FastGL, Algorithm 1) over windows of sampled batches."""

    name: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "a window of batches drawn, then run by match degree (FastGL)"
    window: int = option(8, "batches drawn ahead and put in order", range(2, 1025))
    start: str = option(
        FIRST,
        "of a window: first: the batch drawn first, as the paper has it; carried: the one that"
        " matches the last batch of the window before best",
        (FIRST, CARRIED),
    )

    def build(self, job: Job) -> GreedyOrder:
        """Build the order of a cell's epochs."""
        return GreedyOrder(self, job)


class GreedyOrder(Permuted):
    """Batches of the random permutation, reordered window by window once they are sampled."""

    def __init__(self, spec: Greedy, job: Job) -> None:
        from gnnbench.measure.stopwatch import Stopwatch

        cell = job.cell
        super().__init__(job.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)
        self.window, self._start, self._counts = spec.window, spec.start, job.counts
        self._watch = Stopwatch(job.device)
        job.counts.settled_by(self._count_time)

    def _count_time(self) -> None:
        if seconds := self._watch.take():
            self._counts.add("order", REORDER_TIME, seconds)

    def arrange(self, batches: Sequence[Batch], last: Batch | None) -> list[int]:
        """Return the order in which a window's batches run after ``last``.

        On a GPU, overlaps are counted there. The host waits for them once a window.
        """
        from gnnbench.kernels.match import greedy_order, match_degrees, overlaps

        carried = [last] if last is not None and self._start == CARRIED else []
        nodes = [b.input_nodes for b in (*carried, *batches)]
        with self._watch:
            with_carried = greedy_order(match_degrees(overlaps(nodes)))
        order = [position - len(carried) for position in with_carried[len(carried) :]]
        moved = sum(position != index for index, position in enumerate(order))
        self._counts.add("order", REORDERED, moved)
        return order
