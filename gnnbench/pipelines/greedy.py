"""``order=greedy``: reorders a window of batches so that consecutive batches share nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.counters import REORDER_TIME, REORDERED
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.pipelines.order import OrderSpec, Permuted

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.core.minibatch import Batch
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.schedule import ScheduleSpec
    from gnnbench.sampling.stage import SamplerSpec

FIRST, CARRIED = "first", "carried"
DEVICE, HOST = "device", "host"


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
    waiting: str = option(
        DEVICE,
        "where the topology of the other batches of a window waits: device: on the device that"
        " drew it; host: in host memory, the next one prefetched while a batch trains and"
        " transposes freed after each step, as in the paper",
        (DEVICE, HOST),
        added=True,
    )

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, schedule: ScheduleSpec
    ) -> None:
        """Raise ``UnsupportedError`` if waiting batches cannot be moved."""
        if self.waiting == DEVICE or features is None:
            return
        if schedule.name != "serial":
            raise UnsupportedError(
                f"order.waiting=host runs one batch after the other, and schedule"
                f" '{schedule.name}' does not; take schedule=serial, or waiting=device"
            )
        if not sampler.mini_batches:
            raise UnsupportedError(
                f"order.waiting=host moves gnnbench's own blocks, and sampler '{sampler.name}'"
                " draws others; take one of gnnbench's own samplers, or waiting=device"
            )
        if features.name == "window":
            raise UnsupportedError(
                "order.waiting=host frees the nodes of waiting batches, which features 'window'"
                " fetches together; take features=match, or waiting=device"
            )

    def build(self, job: Job) -> GreedyOrder:
        """Build the order of a cell's epochs."""
        return GreedyOrder(self, job)


class GreedyOrder(Permuted):
    """Batches of the random permutation, reordered window by window once they are sampled."""

    def __init__(self, spec: Greedy, job: Job) -> None:
        from gnnbench.measure.stopwatch import Stopwatch
        from gnnbench.pipelines.waiting import HostBatches

        cell = job.cell
        super().__init__(job.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)
        self.window, self._start, self._counts = spec.window, spec.start, job.counts
        self._host = HostBatches(job.device) if spec.waiting == HOST else None
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

    def put_aside(self, batch: Batch) -> Batch:
        """Return the batch, or with ``waiting=host`` one whose topology is on the host."""
        return batch if self._host is None else self._host.put(batch)

    def take(self, sampled: list[Batch], index: int) -> Batch:
        """Return ``sampled[index]`` on the device."""
        return sampled[index] if self._host is None else self._host.take(sampled, index)

    def stepped(self, batch: Batch) -> None:
        """Free the transposes of a batch, with ``waiting=host``."""
        if self._host is not None:
            for block in batch.blocks:
                block.transposed = block.symmetric = None

    def release(self, sampled: list[Batch], index: int) -> None:
        """Drop a batch that ran, with ``waiting=host``."""
        if self._host is not None:
            self._host.release(sampled, index)
