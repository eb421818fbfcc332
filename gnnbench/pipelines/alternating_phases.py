"""Alternating phases: sample and store a number of batches, train on them, then the next ones.

On a GPU a sample that waits on the host is one buffer of locked memory
(``batch_buffer.BufferLayout``). One stream writes and reads it, so nothing waits. A sample that
waits on the device that drew it stays as it is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.counters import STORED_BYTES, STORED_MOST, Metric
from gnnbench.core.errors import GpuMemoryError, HostMemoryError
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.measure.allocated import free_on
from gnnbench.measure.machine import free_memory_bytes
from gnnbench.pipelines.batch_buffer import BufferLayout, TensorSlice, copy_ids
from gnnbench.pipelines.prefetch import PrefetchSchedule
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.serial import run_windows
from gnnbench.sampling.stage import SamplerStage

if TYPE_CHECKING:
    from gnnbench.core.cell import Until
    from gnnbench.core.job import Job
    from gnnbench.measure.timeline import Timeline

GIB = 1 << 30


@dataclass(frozen=True)
class HostSample:
    """A stored batch: ``slices`` of page-locked ``memory``, uint8 ``[bytes]``."""

    slices: MiniBatch[TensorSlice]
    memory: Tensor


class StoredSamples(SamplerStage):
    """Takes the sampler's place in the training phase: returns stored samples, oldest first."""

    def __init__(self, job: Job, on_host: bool) -> None:
        self.job = job
        self._moves = on_host and job.device.type == "cuda"
        self._waiting: deque[MiniBatch | HostSample] = deque()
        self.bytes = 0  # of all samples that were stored

    def put(self, batch: Batch) -> None:
        """Store a batch of gnnbench's own blocks; tensors at the same address are stored once.

        Raises ``HostMemoryError`` if memory cannot be locked for it.
        """
        assert isinstance(batch, MiniBatch)
        layout = BufferLayout()
        slices = batch.mapped(layout.place)
        self.bytes += layout.size
        if not self._moves:
            self._waiting.append(batch)
            return
        memory = self._locked(layout.size)
        for tensor_slice, tensor in layout.slices:
            tensor_slice.of(memory).copy_(tensor, non_blocking=True)
        self._waiting.append(HostSample(slices, memory))

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
        """Return the oldest stored batch, on the compute device."""
        stored = self._waiting.popleft()
        if isinstance(stored, MiniBatch):
            return stored
        on_device = stored.memory.to(self.job.device, non_blocking=True)
        moved = stored.slices.mapped(lambda tensor_slice: tensor_slice.of(on_device))
        copy_ids(moved)
        return moved


class AlternatingPhases(Schedule):
    """Samples and stores ``batches`` batches (0: the epoch's), then trains on them.

    ``on_host``: samples wait in host memory, else on the device that drew them. Rows are fetched
    ``depth`` batches ahead of training.
    """

    def __init__(self, job: Job, batches: int, on_host: bool, depth: int = 0) -> None:
        self._job, self._batches, self._on_host = job, batches, on_host
        self._train = PrefetchSchedule(depth).run if depth else run_windows
        self._checked_for = 0  # further samples of a phase that are known to fit into memory

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Run the epoch; spans of ``sample`` are sampling and storing a batch, and loading it back.

        Raises ``HostMemoryError`` or ``GpuMemoryError`` if a phase's samples would not fit,
        estimated from the first one.
        """
        window = stages.window
        phase = -(-(self._batches or len(batches) or 1) // window) * window
        peak, last = 0, None
        for first in range(0, len(batches), phase):
            seeds = batches[first : first + phase]
            stored = StoredSamples(self._job, self._on_host)
            for number, batch_seeds in enumerate(seeds, first):
                with timeline.span("sample", number):
                    stored.put(stages.sampler.sample(batch_seeds, epoch, number))
                if (more := min(phase, len(batches)) - 1) > self._checked_for:
                    self._check_memory(stored.bytes, more)
            peak = max(peak, stored.bytes)
            self._count(STORED_BYTES, stored.bytes)
            training_stages = replace(stages, sampler=stored)
            last = self._train(epoch, seeds, training_stages, timeline, first, last)
        self._count(STORED_MOST, peak)

    def _count(self, measure: Metric, value: int) -> None:
        where = "host" if self._on_host else "device"
        self._job.counts.add("schedule", measure, value, where)

    def _check_memory(self, size: int, more: int) -> None:
        """Raise an error unless ``more`` samples of ``size`` bytes fit."""
        needed, free = size * more, self._free_bytes()
        if needed > free:
            error = HostMemoryError if self._on_host else GpuMemoryError
            where, other = ("the host", "gpu") if self._on_host else ("the GPU", "host")
            instead = f", or schedule.stored={other}" if self._job.device.type == "cuda" else ""
            raise error(
                f"schedule 'alternate': {more} more samples of {size / GIB:.3g} GiB each are to be"
                f" stored, and {where} has {free / GIB:.3g} GiB free; give schedule.batches=N for"
                f" shorter turns{instead}"
            )
        self._checked_for = more

    def _free_bytes(self) -> int:
        """Return the free memory where samples wait."""
        if self._on_host:
            return free_memory_bytes()
        return free_on(self._job.device)
