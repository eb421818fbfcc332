"""``schedule=producer-consumer``: a second process samples and fetches, the caller's trains.

PyTorch-Direct, section 4.3.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core import registry
from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.distributed.producer_start import StartedProducer, start
from gnnbench.pipelines.find import from_plain
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.schedule_plan import SchedulePlan
from gnnbench.pipelines.serial import SerialSchedule

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

MPS_CONTROL = "nvidia-cuda-mps-control"
MPS_ANSWER_S = 10.0

_started_early: list[StartedProducer] = []  # until ``build`` takes them over


class ProducerConsumerPlan(SchedulePlan):
    """Rows come from the store of the producer's process."""

    loads_in_trainer: ClassVar[bool] = False

    def check(
        self, sampler: SamplerSpec, features: StoreSpec | None, order: OrderSpec, device: str
    ) -> None:
        """Raise ``UnsupportedError`` for batches of a foreign framework, which cannot be shared."""
        if features is not None and not sampler.mini_batches:
            raise UnsupportedError(
                f"schedule '{self._spec.name}' hands over batches of gnnbench's own blocks, and"
                f" sampler '{sampler.name}' draws others; take one of gnnbench's"
                " own samplers, or schedule=serial"
            )


@dataclass(frozen=True)
class ProducerConsumer(ScheduleSpec):
    """Batches come in serial's order, through buffers that both processes map.

    The producer has its own sampler and store. Gate and probe use those of the consumer, so both
    are in memory twice. Without MPS, kernels of two processes take turns on a GPU.
    """

    name: ClassVar[str] = "producer-consumer"
    summary: ClassVar[str] = (
        "a second process samples and fetches into shared buffers (PyTorch-Direct); sampler and"
        " store are in memory twice"
    )
    plan_type: ClassVar[type[SchedulePlan]] = ProducerConsumerPlan
    buffers: int = option(2, "batches in memory that the processes share", range(1, 65))
    share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves the producer; 100: no MPS",
        range(1, 101),
    )

    def resolved(self, device: str) -> Self:
        """Return the spec with all defaults. Raises ``UnsupportedError`` for a share of a CPU."""
        if device == "cpu" and self.share != 100:
            raise UnsupportedError(
                "schedule.share needs a GPU; give --device cuda, or leave it 100"
            )
        return super().resolved(device)

    def build(self, job: Job) -> Schedule:
        """Have a producer build its stages; starts the process if it was not started early.

        An epoch that only samples has nothing to overlap and is serial, in one process.
        """
        from gnnbench.distributed.consumer import Consumer

        if job.cell.goes_until is Until.SAMPLE:
            return SerialSchedule()
        if self.share != 100:
            _check_mps()
        is_early = bool(_started_early) and self.share == 100
        started = _started_early.pop() if is_early else start(self.share)
        return Consumer(job, self.buffers, self.share, started)


def start_early(cell: Cell) -> None:
    """Start the producer of a cell before this process imports torch: both import it meanwhile.

    Does nothing for cells with another schedule, for cells that only sample, and for a share below
    100, where MPS may be missing.
    """
    value = cell.stage(registry.SCHEDULE) if cell.composed else None
    if value is None or value["name"] != ProducerConsumer.name:
        return
    if cell.goes_until is Until.SAMPLE:
        return
    spec = from_plain(registry.SCHEDULE, value)
    if isinstance(spec, ProducerConsumer) and spec.share == 100:
        _started_early.append(start(spec.share))


def _check_mps() -> None:
    """Raise ``UnsupportedError`` unless the MPS daemon of this environment answers."""
    try:
        answer = subprocess.run(
            [MPS_CONTROL], input="get_server_list\n", text=True, capture_output=True,
            timeout=MPS_ANSWER_S, check=False,
        )  # fmt: skip
        runs = answer.returncode == 0 and "Cannot find" not in answer.stdout + answer.stderr
    except (OSError, subprocess.TimeoutExpired):
        runs = False
    if not runs:
        raise UnsupportedError(
            f"schedule.share needs the MPS daemon; start it before the run with '{MPS_CONTROL} -d'"
            " (it and the run take the same CUDA_MPS_PIPE_DIRECTORY), or leave the share 100"
        )
