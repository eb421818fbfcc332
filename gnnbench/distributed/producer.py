"""The producer's process: it samples batches, fetches their rows and writes both to buffers.

Started by ``gnnbench.distributed.producer_start`` with its parent's pid and the number of a socket.
It builds the cell's sampler, store and order, or only those of its part of the phases, runs each
epoch batch by batch without a trainer, and ends with the socket or with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.counters import (
    BUFFER_BYTES,
    BUFFERS_GROWN,
    COPIED_BYTES,
    HANDED_BYTES,
    SYNCHRONISATIONS,
    Counts,
)
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.distributed import mps
from gnnbench.distributed.producer_messages import (
    BuildProducer,
    ForeseeEpochs,
    GoneError,
    Part,
    ProduceEpoch,
    RequestDone,
    StopEpoch,
    receive,
    send,
)
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.distributed.remote_sampler import RemoteSampler
from gnnbench.measure.allocated import private_bytes
from gnnbench.measure.timeline import Span, Timeline
from gnnbench.measure.trace import kernel_trace
from gnnbench.pipelines.batch_buffer import BufferReleased, ProducerBuffer
from gnnbench.pipelines.find import of_cell
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.serial import run_windows
from gnnbench.pipelines.utilization import add_rows

if TYPE_CHECKING:
    from gnnbench.features.spec import StoreSpec
    from gnnbench.pipelines.order import OrderSpec
    from gnnbench.sampling.stage import SamplerSpec

LANES = {Part.BOTH: "producer", Part.GATHER: "producer", Part.SAMPLE: "sampler"}


class _StoppedError(Exception):
    """The consumer has stopped the epoch."""


class Producer:
    """The stages of a cell that come before the trainer, and the buffers that they fill."""

    def __init__(self, message: BuildProducer, connection: Connection[object, object]) -> None:
        torch.set_num_threads(message.threads)
        if message.device is not None:
            torch.cuda.set_device(message.device)
            device = torch.cuda.get_device_properties(message.device)
            processors = device.multi_processor_count
            mps.check_share("schedule.share", message.share, processors, message.processors)
        self._connection, self._counts = connection, Counts()
        self._lane = LANES[message.part]
        job = self._job = Job(message.cell, message.graph, self._counts)
        self._timeline = Timeline.on(str(job.device))
        self._buffers = [ProducerBuffer(number, job.device) for number in range(message.buffers)]
        self._next_buffer = self._position = 0  # position: of the next batch in its epoch
        self._released = 0  # buffers that the reader has released in this epoch
        specs = of_cell(message.cell)
        sampler = cast("SamplerSpec", specs["sampler"])
        order = cast("OrderSpec", specs["order"]).build(job)
        self._remote = RemoteSampler(sampler, job, message) if message.part is Part.GATHER else None
        self._stages = Stages(self._remote or sampler.stage_of(job), None, None, self._write, order)
        if message.part is not Part.SAMPLE:
            store = self._stages.store = cast("StoreSpec", specs["features"]).build(job)
            store.fit(_refuse_derived_ratio)
            if self._remote is not None:
                self._remote.client.await_built()
            store.prepare(self._stages.footprint)
        self._counts.clear()

    def epoch(self, message: ProduceEpoch) -> None:
        """Run an epoch and pass on each of its batches, then its counts and spans."""
        with kernel_trace(message.trace):
            spans = self._run_epoch(message)
        counts = self._count_epoch()
        send(self._connection, RequestDone(counts, spans, self._peak_bytes()))

    def _run_epoch(self, message: ProduceEpoch) -> list[Span]:
        """Run an epoch and pass on each of its batches; return its spans."""
        self._counts.clear()  # of an epoch that failed
        self._position = 0
        for buffer in self._buffers:  # after a stopped epoch no release arrives
            buffer.free = True
            buffer.written = buffer.grown = buffer.copied = 0
        self._released = 0
        self._timeline.start()
        seeds = list(torch.from_numpy(message.seeds).to(self._job.device).split(message.lengths))
        if self._remote is None:
            self._stages.sampler.expect(message.number, seeds)
        else:
            self._remote.begin_epoch(message.number, seeds, message.numbers)
        if self._stages.store is not None:
            self._stages.store.forget()
        with suppress(_StoppedError):
            self._produce(message.number, seeds, message.numbers)
        self._timeline.stop()
        spans = [span._replace(lane=self._lane) for span in self._timeline.spans()]
        sampled = None if self._remote is None else self._remote.finish()
        if sampled is not None:
            spans += sampled.spans
            add_rows(self._counts, sampled.counts)
        return spans

    def _produce(self, epoch: int, batches: list[Tensor], numbers: list[int]) -> None:
        """Run the phases of each batch, or of each window if the stages need windows.

        ``numbers``: places of the batches in the epoch; those of windows are all of it.
        """
        stages, table = self._stages, self._job.graph.features
        if stages.window > 1:
            run_windows(epoch, batches, stages, self._timeline)
            return
        for number, seeds in zip(numbers, batches, strict=True):
            if self._remote is not None:
                self._remote.await_batch()
            with self._timeline.span("sample", number):
                batch = _own(stages.sampler.sample(seeds, epoch, number))
            buffer = self._free_buffer()
            with self._timeline.span("memory_io", number):
                if stages.store is None:
                    message = buffer.write(batch, None)
                else:
                    message = buffer.gather(batch, table, stages.store.load_into)
            send(self._connection, message)

    def _count_epoch(self) -> list[list[str | float]]:
        """Return the counts of the epoch that ran last."""
        for buffer in self._buffers:
            self._counts.add("schedule", HANDED_BYTES, buffer.written)
            self._counts.add("schedule", BUFFER_BYTES, buffer.size)
            self._counts.add("schedule", BUFFERS_GROWN, buffer.grown)
            self._counts.add("schedule", COPIED_BYTES, buffer.copied)
        taken = 0 if self._remote is None else self._remote.client.taken
        self._counts.add("schedule", SYNCHRONISATIONS, self._released + taken, self._lane)
        counts = self._counts.rows()
        self._counts.clear()
        return counts

    def foresee(self, message: ForeseeEpochs) -> None:
        """Prepare the store, an oracle, for the epochs that run next."""
        assert self._stages.store is not None
        self._stages.store.foresee(self._stages.footprint, message.numbers)
        self._counts.clear()
        send(self._connection, RequestDone([], [], self._peak_bytes()))

    def handle(self, message: object) -> None:
        """Process a message about the running epoch. Raises if the consumer stops it."""
        if isinstance(message, BufferReleased):
            self._buffers[message.buffer].done(message)
            self._released += 1
        elif isinstance(message, StopEpoch):
            raise _StoppedError

    def close(self) -> None:
        """Free the stages."""
        self._stages.sampler.close()
        if self._stages.store is not None:
            self._stages.store.close()

    def _write(self, batch: Batch, rows: Tensor | None) -> None:
        """Write a batch of a window and its rows to the next buffer."""
        own = _own(batch)
        buffer = self._free_buffer()
        with self._timeline.span("memory_io", self._position):
            message = buffer.write(own, rows)
        self._position += 1
        send(self._connection, message)

    def _free_buffer(self) -> ProducerBuffer:
        """Return the next buffer once its previous batch is released."""
        buffer = self._buffers[self._next_buffer]
        self._next_buffer = (self._next_buffer + 1) % len(self._buffers)
        while not buffer.free or self._connection.poll():
            self.handle(receive(self._connection))
        buffer.await_reader()
        return buffer

    def _peak_bytes(self) -> int:
        """Return this process's private memory in bytes.

        On a GPU the allocator's peak and the buffers, on the host the current size, that of the
        sampler's process included.
        """
        if self._job.device.type == "cuda":
            peak = int(torch.cuda.max_memory_allocated(self._job.device))
            return peak + sum(buffer.size for buffer in self._buffers)
        return private_bytes() + (0 if self._remote is None else self._remote.client.peak_bytes)


def _own(batch: Batch) -> MiniBatch:
    """Return the batch. Raises ``UnsupportedError`` for one of a foreign framework."""
    if not isinstance(batch, MiniBatch):
        raise UnsupportedError(
            "schedule=producer-consumer hands over batches of gnnbench's own blocks, not a"
            f" {type(batch).__name__}; take another sampler, or schedule=serial"
        )
    return batch


def _refuse_derived_ratio() -> int:
    """Raise ``UnsupportedError``: this process does not train and cannot measure free memory."""
    raise UnsupportedError(
        "schedule=producer-consumer does not derive a cache's ratio from memory; give"
        " features.ratio a number, or take schedule=serial"
    )


def serve(connection: Connection[object, object]) -> None:
    """Answer requests until the consumer closes the connection."""
    producer: Producer | None = None
    while True:
        try:
            message = receive(connection)
            if isinstance(message, BuildProducer):
                producer = Producer(message, connection)
                send(connection, RequestDone([], [], 0))
                continue
            assert producer is not None
            if isinstance(message, ProduceEpoch):
                producer.epoch(message)
            elif isinstance(message, ForeseeEpochs):
                producer.foresee(message)
            else:
                with suppress(_StoppedError):  # the epoch ended before the message arrived
                    producer.handle(message)
        except GoneError:
            break
        except Exception as error:
            traceback.print_exc()
            send(connection, RemoteFailure.by(error))
    if producer is not None:
        producer.close()


def main() -> None:
    """Entry point; the argument is JSON: ``{"parent": pid, "socket": number}``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    arguments: dict[str, int] = json.loads(sys.argv[1])
    die_with_parent(arguments["parent"])
    os.dup2(2, 1)  # the parent's output may carry a protocol
    with Connection(arguments["socket"]) as connection, suppress(GoneError):
        search_path = receive(connection)  # stages are found as in the parent
        assert isinstance(search_path, list)
        sys.path[:] = search_path
        serve(connection)
    sys.stderr.flush()
    os._exit(0)  # as a worker
