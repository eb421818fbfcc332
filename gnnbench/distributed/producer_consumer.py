"""``schedule=producer-consumer``: other processes sample and fetch, the caller's trains.

PyTorch-Direct, sections 3.2.2, 3.3 and 4.3.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.stage import option
from gnnbench.distributed import mps
from gnnbench.distributed.producer_spec import (
    THREE,
    TWO,
    build_message,
    check_device,
    check_sampler,
)
from gnnbench.distributed.producer_start import StartedProducer, start
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import SerialSchedule

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

RANKS = "data-parallel"  # whose ranks may each have a producer

_started_early: list[StartedProducer] = []  # until ``build`` takes them over


class ProducerConsumerPlan(SchedulePlan):
    """Rows come from the store of the producer's process."""

    _spec: ProducerConsumer
    loads_in_trainer: ClassVar[bool] = False

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` for batches of a foreign framework, which cannot be shared,
        and for a sampler's process that would sample on a GPU."""
        if features is not None:
            check_sampler(self._spec, sampler, device)


@dataclass(frozen=True)
class ProducerConsumer(ScheduleSpec):
    """Batches come in serial's order, through buffers that the processes map.

    The producer has its own sampler and store. Gate and probe use those of the consumer, so both
    are in memory twice. Without MPS, kernels of two processes take turns on a GPU. With three
    processes the sampler runs on the CPU, ahead of the producer (section 3.3, Fig. 6).
    """

    name: ClassVar[str] = "producer-consumer"
    summary: ClassVar[str] = (
        "other processes sample and fetch into shared buffers (PyTorch-Direct); sampler and store"
        " are in memory twice"
    )
    implementation: ClassVar[int] = 2  # 2: rows are gathered in the shared buffer
    plan_type: ClassVar[type[SchedulePlan]] = ProducerConsumerPlan
    buffers: int = option(2, "batches in memory that two processes share", range(1, 65))
    share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves the producer; 100: no MPS",
        range(1, 101),
    )
    processes: int = option(
        TWO,
        "2: one samples and gathers, one trains; 3: one samples (on the CPU), one gathers, one"
        " trains",
        (TWO, THREE),
        added=True,
    )
    trainer_share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves the process that trains; 100: no limit",
        range(1, 101),
        added=True,
    )

    def resolved(self, device: str) -> Self:
        """Return the spec with all defaults. Raises ``UnsupportedError`` for a share of a CPU."""
        check_device(self, device)
        return super().resolved(device)

    def build(self, job: Job) -> Schedule:
        """Have a producer build its stages; starts the process if it was not started early.

        An epoch that only samples has nothing to overlap and is serial, in one process. Raises
        ``UnsupportedError`` if MPS does not limit the processes to their shares.
        """
        if job.cell.goes_until is Until.SAMPLE:
            return SerialSchedule()
        import torch

        from gnnbench.distributed.consumer import Consumer

        message = build_message(self, job, self.buffers, torch.get_num_threads())
        is_early = bool(_started_early) and self.share == mps.WHOLE
        started = _started_early.pop() if is_early else start(self.share)
        return Consumer(job, message, started)


def start_early(cell: Cell) -> None:
    """Start the producer of a cell before this process imports torch: both import it meanwhile.

    Limits this process to its share of the GPU, too, which MPS reads when it first uses the GPU;
    ranks inherit that. Does nothing for cells without a producer and for cells that only sample. A
    producer with a share below 100 is started later, because MPS may be missing, and so are those
    of ranks.
    """
    value = cell.stage(registry.SCHEDULE) if cell.composed else None
    if value is None or value["name"] not in (ProducerConsumer.name, RANKS):
        return
    if cell.goes_until is Until.SAMPLE:
        return
    share, trainer_share = (value.get(name) for name in ("share", "trainer_share"))
    if value["name"] == ProducerConsumer.name and share == mps.WHOLE:
        _started_early.append(start())
    if isinstance(trainer_share, int) and trainer_share < mps.WHOLE:
        os.environ[mps.SHARE] = str(trainer_share)
