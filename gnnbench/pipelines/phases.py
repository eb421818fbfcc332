"""Epochs in turns: so many batches sampled and stored, then trained on, then the next so many.

On a GPU a sample that waits on the host is one piece of locked memory (``handed.Layout``), written
by the stream that drew it and read by the same: nobody waits. One that waits on the device that it
was drawn on stays as it is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.counters import STORED_BYTES, STORED_MOST, Measure
from gnnbench.core.errors import GpuMemoryError, HostMemoryError
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.measure.allocated import free_on
from gnnbench.measure.machine import free_memory_bytes
from gnnbench.pipelines.batch_buffer import Layout, own_ids
from gnnbench.pipelines.prefetch import Prefetch
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.serial import run_windows
from gnnbench.sampling.stage import SamplerStage

if TYPE_CHECKING:
    from gnnbench.core.cell import Until
    from gnnbench.core.job import Job
    from gnnbench.measure.timeline import Timeline

GIB = 1 << 30


class Samples(SamplerStage):
    """What was sampled and waits, given out in that order in place of the sampler."""

    def __init__(self, job: Job, on_host: bool) -> None:
        self.job = job
        self._moves = on_host and job.device.type == "cuda"
        self._waiting: deque[tuple[MiniBatch, Tensor | None]] = deque()
        self.bytes = 0  # of what waits and has waited since it was made

    def put(self, batch: Batch) -> None:
        """Store a batch of gnnbench's own blocks; what lies at one address once.

        Raises ``HostMemoryError`` where memory cannot be locked for it.
        """
        assert isinstance(batch, MiniBatch)
        layout = Layout()
        parts = batch.mapped(layout.place)
        self.bytes += layout.size
        if not self._moves:
            self._waiting.append((batch, None))
            return
        memory = self._locked(layout.size)
        for part, tensor in layout.parts:
            part.of(memory).copy_(tensor, non_blocking=True)
        self._waiting.append((parts, memory))

    @staticmethod
    def _locked(size: int) -> Tensor:
        try:
            return torch.empty(size, dtype=torch.uint8, pin_memory=True)
        except RuntimeError as error:  # which torch calls an error of the GPU
            raise HostMemoryError(
                f"{size} bytes for a stored sample cannot be locked for the GPU; give"
                " schedule.batches=N for shorter turns, or schedule.stored=gpu"
            ) from error

    def sample(self, seeds: Tensor, epoch: int, number: int) -> MiniBatch:
        """The batch that has waited longest, on the compute device."""
        batch, memory = self._waiting.popleft()
        if memory is None:
            return batch
        there = memory.to(self.job.device, non_blocking=True)
        found = batch.mapped(lambda part: part.of(there))
        own_ids(found)
        return found


class Turns(Schedule):
    """``batches`` sampled and stored in a turn (0: all of an epoch), on the host or where drawn;
    rows fetched ``depth`` batches before they are trained on."""

    def __init__(self, job: Job, batches: int, on_host: bool, depth: int = 0) -> None:
        self._job, self._batches, self._on_host = job, batches, on_host
        self._train = Prefetch(depth=depth).run if depth else run_windows
        self._fits = 0  # samples that do beside the first, as far as that told

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Spans of ``sample`` are drawing and storing a batch, and taking it out again.

        Raises ``HostMemoryError`` or ``GpuMemoryError`` where a turn's samples would not fit, by
        the size of the first.
        """
        turn = -(-(self._batches or len(batches) or 1) // stages.ahead) * stages.ahead
        most, last = 0, None
        for first in range(0, len(batches), turn):
            seeds = batches[first : first + turn]
            waiting = Samples(self._job, self._on_host)
            for number, few in enumerate(seeds, first):
                with timeline.span("sample", number):
                    waiting.put(stages.sampler.sample(few, epoch, number))
                if (more := min(turn, len(batches)) - 1) > self._fits:
                    self._look_for_room(waiting.bytes, more)
            most = max(most, waiting.bytes)
            self._count(STORED_BYTES, waiting.bytes)
            trains = replace(stages, sampler=waiting)
            last = self._train(epoch, seeds, trains, timeline, first, last)
        self._count(STORED_MOST, most)

    def _count(self, measure: Measure, value: int) -> None:
        where = "host" if self._on_host else "device"
        self._job.counts.add("schedule", measure, value, where)

    def _look_for_room(self, size: int, more: int) -> None:
        """Whether ``more`` samples of ``size`` bytes have room."""
        wanted, free = size * more, self._free()
        if wanted > free:
            error = HostMemoryError if self._on_host else GpuMemoryError
            whose, other = ("the host", "gpu") if self._on_host else ("the GPU", "host")
            instead = f", or schedule.stored={other}" if self._job.device.type == "cuda" else ""
            raise error(
                f"schedule 'alternate': {more} more samples of {size / GIB:.3g} GiB each are to be"
                f" stored, and {whose} has {free / GIB:.3g} GiB free; give schedule.batches=N for"
                f" shorter turns{instead}"
            )
        self._fits = more

    def _free(self) -> int:
        """Bytes that samples may take where they are stored."""
        if self._on_host:
            return free_memory_bytes()
        return free_on(self._job.device)
