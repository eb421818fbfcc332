"""What schedules with a producer's process have in common: their options' checks and its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gnnbench.core.errors import UnsupportedError
from gnnbench.distributed import mps

if TYPE_CHECKING:
    from gnnbench.core.job import Job
    from gnnbench.distributed.producer_messages import BuildProducer
    from gnnbench.sampling.stage import SamplerSpec

ONE, TWO, THREE = 1, 2, 3  # processes: one for each phase, or with several phases


class ProducerSpec(Protocol):
    """Options of such a schedule."""

    @property
    def name(self) -> str:
        """Name of the schedule."""
        ...

    @property
    def processes(self) -> int:
        """``TWO``: one samples and gathers, one trains; ``THREE``: another one samples."""
        ...

    @property
    def share(self) -> int:
        """Percent of the GPU that MPS leaves the producer."""
        ...

    @property
    def trainer_share(self) -> int:
        """Percent of the GPU that MPS leaves the process that trains."""
        ...


def limits(spec: ProducerSpec) -> bool:
    """Whether MPS limits one of the processes."""
    return spec.share < mps.WHOLE or spec.trainer_share < mps.WHOLE


def check_device(spec: ProducerSpec, device: str) -> None:
    """Raise ``UnsupportedError`` for a share of a CPU."""
    if device == "cpu" and limits(spec):
        option_name = "share" if spec.share < mps.WHOLE else "trainer_share"
        raise UnsupportedError(
            f"schedule.{option_name} needs a GPU; give --device cuda, or leave it 100"
        )


def check_sampler(spec: ProducerSpec, sampler: SamplerSpec, device: str) -> None:
    """Raise ``UnsupportedError`` for batches of a foreign framework, which cannot be shared, and
    for a sampler's process that would sample on a GPU."""
    if not sampler.mini_batches:
        raise UnsupportedError(
            f"schedule '{spec.name}' hands over batches of gnnbench's own blocks, and"
            f" sampler '{sampler.name}' draws others; take one of gnnbench's"
            " own samplers, or schedule=serial"
        )
    topology = sampler.plain().get("topology")
    if spec.processes == THREE and device != "cpu" and topology != "cpu":
        raise UnsupportedError(
            "schedule.processes=3 samples on the CPU, in a process of its own; give"
            f" sampler.topology=cpu instead of {topology}, or processes=2"
        )


def build_message(spec: ProducerSpec, job: Job, buffers: int, threads: int) -> BuildProducer:
    """Return the message that has a producer build the stages of ``job``.

    Raises ``UnsupportedError`` if MPS does not run, or does not limit this process to its share.
    """
    import torch

    from gnnbench.distributed.producer_messages import BuildProducer, Part

    device, processors = job.device.index if job.device.type == "cuda" else None, 0
    if limits(spec):
        mps.check_daemon()
        assert device is not None
        processors = mps.whole_processors(device)
        own = torch.cuda.get_device_properties(device).multi_processor_count
        mps.check_share("schedule.trainer_share", spec.trainer_share, own, processors)
    part = Part.GATHER if spec.processes == THREE else Part.BOTH
    return BuildProducer(
        job.cell, job.graph, threads, device, processors, buffers, spec.share, part
    )
