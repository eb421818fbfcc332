"""The other side of a producer's process: its requests, its batches in buffers, and its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

from gnnbench.core.errors import GnnbenchError
from gnnbench.distributed.process_exit import death_error
from gnnbench.distributed.producer_messages import (
    BuildProducer,
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

if TYPE_CHECKING:
    from gnnbench.distributed.producer_start import StartedProducer

END_S = 10.0

B = TypeVar("B", bound=ConsumerBuffer)


class ProducerDiedError(GnnbenchError):
    """The process of a producer or of its sampler has ended by itself."""


class ProducerClient(Generic[B]):
    """Requests the batches of a producer's process, one request at a time.

    An exception in that process is raised here, with its type and text if this process knows the
    type. If the process has died ``ProducerDiedError`` is raised, or ``MemoryError`` if the kernel
    killed it for lack of memory. ``name`` names the process in messages; ``peak_bytes`` is the peak
    of its private memory. ``taken`` counts the batches received.
    """

    def __init__(
        self, started: StartedProducer, buffers: list[B], name: str, message: BuildProducer
    ) -> None:
        self.peak_bytes = self.taken = 0
        self.is_busy = False  # a request has no answer yet
        self.process, self._connection = started.process, started.connection
        self._buffers, self._name = buffers, name
        self._oom_kills = oom_kills()
        self._is_built = False  # as far as the process has answered
        self._build_error: Exception | None = None
        self._send(sys.path)
        self.request(message)

    def await_built(self, progress: Callable[[], None] = lambda: None) -> None:
        """Wait until the process has built its stages; calls ``progress`` each second.

        Raises the error of building, each time.
        """
        if self._build_error is not None:
            raise self._build_error
        if not self._is_built:
            try:
                while not self._connection.poll(1.0):
                    progress()
                self.receive()
            except Exception as error:
                self._build_error = error
                raise
            self._is_built = True

    def request(self, message: object) -> None:
        """Send a request; ``receive`` returns its answers, ``RequestDone`` last."""
        self._send(message)
        self.is_busy = True

    def begin_epoch(
        self, epoch: int, batches: Sequence[Tensor], numbers: Sequence[int] | None = None,
        trace: str = "",
    ) -> None:  # fmt: skip
        """Request batches of an epoch; ends one that still runs.

        ``batches``: the seeds of each batch; ``numbers``: the place of each in the epoch, from 0
        on by default. ``trace``: the file for a trace of the process's kernels, "" for none.
        """
        self.stop()
        self.taken = 0
        seeds = torch.cat(list(batches)).cpu().numpy()
        places = list(range(len(batches)) if numbers is None else numbers)
        lengths = [b.numel() for b in batches]
        self.request(ProduceEpoch(epoch, seeds, lengths, places, trace))

    def receive(self) -> tuple[BufferFilled, B] | RequestDone:
        """Return the next batch and its buffer, opened, or the end of a request.

        Raises the error of a failed request.
        """
        try:
            message = receive(self._connection)
        except GoneError:
            raise self._death() from None
        if isinstance(message, RemoteFailure):
            self.is_busy = False
            raise message.exception()
        if isinstance(message, RequestDone):
            self.is_busy = False
            self.peak_bytes = max(self.peak_bytes, message.peak_bytes)
            return message
        assert isinstance(message, BufferFilled)
        buffer = self._buffers[message.buffer]
        buffer.open(message)
        self.taken += 1
        return message, buffer

    def release(self, number: int) -> None:
        """Report that the work enqueued so far is the last that reads buffer ``number``."""
        self._send(self._buffers[number].done(number))

    def stop(self) -> None:
        """Have the process stop its epoch, if one runs, and take in what it sent meanwhile."""
        self.await_built()
        if not self.is_busy:
            return
        with suppress(Exception):  # a failure of the process is not why the epoch is stopped
            self._send(StopEpoch())
            while not isinstance(self.receive(), RequestDone):
                pass

    def close(self) -> None:
        """End the process, and unmap its memory."""
        for buffer in self._buffers:
            buffer.close()
        self._connection.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _send(self, message: object) -> None:
        try:
            send(self._connection, message)
        except GoneError:
            raise self._death() from None

    def _death(self) -> Exception:
        """Return the error of a process that has ended by itself."""
        self.is_busy = False
        advice = "run again, or take schedule=serial"
        return death_error(
            self.process, END_S, self._oom_kills, self._name,
            lambda how: ProducerDiedError(f"{self._name}'s process died {how}; {advice}"),
        )  # fmt: skip
