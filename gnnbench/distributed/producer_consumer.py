"""A producer's process samples and fetches, the caller's trains (PyTorch-Direct, section 4.3)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.core.cell import Cell, Until
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.stage import option
from gnnbench.distributed.producer_start import Started, start
from gnnbench.pipelines.schedule import Schedule, ScheduleSpec
from gnnbench.pipelines.serial import Serial

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.core.job import Job
    from gnnbench.features.spec import StoreSpec
    from gnnbench.sampling.stage import SamplerSpec

CONTROL = "nvidia-cuda-mps-control"
ANSWER_S = 10.0

_begun: list[Started] = []  # until they are built


@dataclass(frozen=True)
class ProducerConsumer(ScheduleSpec):
    """Batches come in serial's order, through buffers that both processes map.

    The producer has a sampler and a store of its own, beside those that the gate and the probe look
    at: their memory is taken twice. Without MPS kernels of two processes take turns on a GPU.
    """

    name: ClassVar[str] = "producer-consumer"
    summary: ClassVar[str] = (
        "a second process samples and fetches into shared buffers (PyTorch-Direct); sampler and"
        " store are held twice"
    )
    fetches: ClassVar[bool] = False
    buffers: int = option(2, "batches in memory that the processes share", range(1, 65))
    share: int = option(
        100,
        "percent of a GPU's processors that MPS leaves the producer; 100: no MPS",
        range(1, 101),
    )

    def resolved(self, device: str) -> Self:
        """The same; a share is one of a GPU."""
        if device == "cpu" and self.share != 100:
            raise UnsupportedError(
                "schedule.share needs a GPU; give --device cuda, or leave it 100"
            )
        return super().resolved(device)

    def check(self, sampler: SamplerSpec, features: StoreSpec | None) -> None:
        """Another process takes no batch that a foreign framework holds."""
        if not sampler.mini_batches:
            raise UnsupportedError(
                f"schedule '{self.name}' hands over batches of gnnbench's own blocks, and sampler"
                f" '{sampler.name}' draws others; take one of gnnbench's"
                " own samplers, or schedule=serial"
            )

    def begin(self, cell: Cell) -> None:
        """Start the producer, which imports as much as this process. Not where MPS may be missing,
        nor where only samples are drawn."""
        if cell.goes_until is not Until.SAMPLE and self.share == 100:
            _begun.append(start(self.share))

    def build(self, job: Job) -> Schedule:
        """Have the producer build its stages; it is started here where it was not begun. Where only
        samples are drawn there is nothing to run beside them: that is serial, in one process."""
        from gnnbench.distributed.consumer import Consumer

        if job.cell.goes_until is Until.SAMPLE:
            return Serial()
        if self.share != 100:
            _need_mps()
        begun = _begun.pop() if _begun and self.share == 100 else start(self.share)
        return Consumer(job, self.buffers, self.share, begun)


def _need_mps() -> None:
    """Raise ``UnsupportedError`` unless the MPS daemon of this environment answers."""
    try:
        asked = subprocess.run(
            [CONTROL], input="get_server_list\n", text=True, capture_output=True,
            timeout=ANSWER_S, check=False,
        )  # fmt: skip
        there = asked.returncode == 0 and "Cannot find" not in asked.stdout + asked.stderr
    except (OSError, subprocess.TimeoutExpired):
        there = False
    if not there:
        raise UnsupportedError(
            f"schedule.share needs the MPS daemon; start it before the run with '{CONTROL} -d' (it"
            " and the run take the same CUDA_MPS_PIPE_DIRECTORY), or leave the share 100"
        )
