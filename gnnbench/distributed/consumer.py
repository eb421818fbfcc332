"""The consumer's side: it trains on the batches of a producer's process, and ends that process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch
from gnnbench.distributed.process_exit import death_error
from gnnbench.distributed.producer_messages import (
    BuildProducer,
    ForeseeEpochs,
    GoneError,
    ProduceEpoch,
    RequestDone,
    StopEpoch,
    receive,
    send,
)
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.measure.machine import oom_kills
from gnnbench.pipelines.batch_buffer import BufferFilled, ConsumerBuffer
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.utilization import add_rows

if TYPE_CHECKING:
    from gnnbench.distributed.producer_start import StartedProducer
    from gnnbench.measure.timeline import Timeline

END_S = 10.0


class ProducerDiedError(GnnbenchError):
    """The producer's process has ended by itself."""


class Consumer(Schedule):
    """Trains on the batches of a producer's process, which builds its stages meanwhile.

    An exception in the producer is raised here, with its type and text if this process knows the
    type. If the process has died ``ProducerDiedError`` is raised, or ``MemoryError`` if the kernel
    killed it for lack of memory. ``buffers`` and ``share`` are those of the spec. The producer ends
    with the thread that started it.
    """

    def __init__(self, job: Job, buffers: int, share: int, started: StartedProducer) -> None:
        self._job, device = job, job.device
        self.peak_bytes = 0
        self._buffers = [ConsumerBuffer(device) for _ in range(buffers)]
        self._oom_kills = oom_kills()
        self._process, self._connection = started.process, started.connection
        on_gpu, processors = device.type == "cuda", 0
        if on_gpu:
            processors = torch.cuda.get_device_properties(device).multi_processor_count
        number = device.index if on_gpu else None
        threads = torch.get_num_threads()
        self._is_built = False  # as far as the producer has answered
        self._build_error: Exception | None = None
        self._is_busy = False  # a request has no answer yet
        self._send(sys.path)
        self._request(
            BuildProducer(job.cell, job.graph, threads, number, processors, buffers, share)
        )

    @property
    def pid(self) -> int:
        """Process id of the producer."""
        return self._process.pid

    def start(self, stages: Stages) -> None:
        """Wait until the producer is built."""
        self._await_built()

    def _await_built(self) -> None:
        """Wait until the producer is built. Raises the error of building, each time."""
        if self._build_error is not None:
            raise self._build_error
        if not self._is_built:
            try:
                self._receive()
            except Exception as error:
                self._build_error = error
                raise
            self._is_built = True

    def foresee(self, epochs: Sequence[int]) -> None:
        """Prepare the producer's store, too, for the epochs that run next."""
        self._stop()
        self._request(ForeseeEpochs(tuple(epochs)))
        self._receive()

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Train on each batch as it arrives; the producer's spans have their own lane.

        A buffer is released when the trainer and ``stages.keep`` have returned. The last buffers
        keep their content until the next epoch.
        """
        if not batches:
            return
        self._stop()
        seeds = torch.cat(batches).cpu().numpy()
        self._request(ProduceEpoch(epoch, seeds, [b.numel() for b in batches]))
        position = 0
        try:
            while isinstance(message := self._receive(), BufferFilled):
                batch, rows = self._open(message, timeline, position)
                if stages.trainer is not None:
                    with timeline.span("compute", position):
                        stages.trainer.step(batch, rows)
                stages.keep(batch, rows)
                self._send(self._buffers[message.buffer].done(message.buffer))
                position += 1
        except BaseException:
            self._stop()
            raise
        timeline.add(message.spans)
        add_rows(self._job.counts, message.counts)

    def close(self) -> None:
        """End the producer's process, and unmap its memory."""
        for buffer in self._buffers:
            buffer.close()
        self._connection.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _open(
        self, message: BufferFilled, timeline: Timeline, position: int
    ) -> tuple[MiniBatch, Tensor]:
        buffer = self._buffers[message.buffer]
        buffer.open(message)
        with timeline.span("memory_io", position):
            return buffer.batch(message)

    def _stop(self) -> None:
        """Have the producer stop its epoch, if one runs, and take in what it sent meanwhile."""
        self._await_built()
        if not self._is_busy:
            return
        with suppress(Exception):  # a failure of the producer is not why the epoch is stopped
            self._send(StopEpoch())
            while isinstance(message := self._receive(), BufferFilled):
                self._buffers[message.buffer].open(message)

    def _request(self, message: object) -> None:
        self._send(message)
        self._is_busy = True

    def _send(self, message: object) -> None:
        try:
            send(self._connection, message)
        except GoneError:
            raise self._death() from None

    def _receive(self) -> BufferFilled | RequestDone:
        """Return the producer's next message. Raises the error of a failed request."""
        try:
            message = receive(self._connection)
        except GoneError:
            raise self._death() from None
        if isinstance(message, RemoteFailure):
            self._is_busy = False
            raise message.exception()
        if isinstance(message, RequestDone):
            self._is_busy = False
            self.peak_bytes = max(self.peak_bytes, message.peak_bytes)
            return message
        assert isinstance(message, BufferFilled)
        return message

    def _death(self) -> Exception:
        """Return the error of a producer that has ended by itself."""
        self._is_busy = False
        advice = "run again, or take schedule=serial"
        return death_error(
            self._process, END_S, self._oom_kills, "the producer",
            lambda how: ProducerDiedError(f"the producer's process died {how}; {advice}"),
        )  # fmt: skip
