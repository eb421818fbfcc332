"""The producer's process: it samples and fetches the batches of epochs, and hands them over.

Started by ``gnnbench.distributed.consumer`` with its parent's pid and the number of a socket.
It builds the cell's sampler, store and order anew, runs each epoch by the serial schedule without a
trainer, and ends with the socket, or with its parent.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.bootstrap import die_with_parent
from gnnbench.core.cell import Cell
from gnnbench.core.counters import BUFFER_BYTES, BUFFERS_GROWN, HANDED_BYTES, Counts
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.datasets.graph import Graph
from gnnbench.measure.allocated import private_bytes
from gnnbench.measure.timeline import Timeline
from gnnbench.pipelines.batch_buffer import Done, Epoch, Failed, Foresee, OutBuffer, Over, Stop
from gnnbench.pipelines.find import of_cell
from gnnbench.pipelines.schedule import Stages
from gnnbench.pipelines.serial import Serial

LANE = "producer"
GRAIN = 2  # processors: what MPS rounds a share to


@dataclass(frozen=True)
class Start:
    """What a producer is built for. ``device`` is the number of a GPU, None on a CPU; ``share`` the
    percentage of its ``processors`` that MPS gives the producer, 100 without MPS."""

    cell: Cell
    graph: Graph
    threads: int
    device: int | None
    processors: int
    buffers: int
    share: int


class GoneError(Exception):
    """The other process has ended."""


class _StoppedError(Exception):
    """The consumer has given up the epoch."""


class Producer:
    """The stages of a cell that come before the trainer, and the buffers that they fill."""

    def __init__(self, start: Start, connection: Connection) -> None:
        torch.set_num_threads(start.threads)
        if start.device is not None:
            torch.cuda.set_device(start.device)
            _check_share(start)
        self._connection, self._counts = connection, Counts()
        self._until = start.cell.goes_until
        job = self._job = Job(start.cell, start.graph, self._counts)
        self._timeline = Timeline.on(str(job.device))
        self._buffers = [OutBuffer(place, job.device) for place in range(start.buffers)]
        self._next = self._place = 0  # the next buffer, and the next batch's place in its epoch
        specs: dict[str, Any] = of_cell(start.cell)
        sampler, order = specs["sampler"].stage_of(job), specs["order"].build(job)
        self._stages = Stages(sampler, None, None, self._hand_over, order)
        self._store = self._stages.store = specs["features"].build(job)
        self._store.fit(_not_measured)
        self._store.prepare(self._stages.footprint)
        self._counts.clear()

    def epoch(self, word: Epoch) -> None:
        """Run an epoch and hand over each of its batches; then say what was counted and timed."""
        self._counts.clear()  # of an epoch that failed
        self._place = 0
        for buffer in self._buffers:  # of one that was given up nobody says that it is done
            buffer.free = True
            buffer.written = buffer.grown = 0
        self._timeline.start()
        seeds = list(torch.from_numpy(word.seeds).to(self._job.device).split(word.lengths))
        self._stages.sampler.expect(word.number, seeds)
        self._store.forget()
        with suppress(_StoppedError):
            Serial().epoch(word.number, seeds, self._stages, self._timeline, self._until)
        self._timeline.stop()
        spans = [span._replace(lane=LANE) for span in self._timeline.spans()]
        for buffer in self._buffers:
            self._counts.add("schedule", HANDED_BYTES, buffer.written)
            self._counts.add("schedule", BUFFER_BYTES, buffer.size)
            self._counts.add("schedule", BUFFERS_GROWN, buffer.grown)
        counts = self._counts.rows()
        self._counts.clear()
        send(self._connection, Over(counts, spans, self._peak_bytes()))

    def foresee(self, word: Foresee) -> None:
        """Have the store get ready for an epoch; then say so."""
        self._store.foresee(self._stages.footprint, word.number)
        self._counts.clear()
        send(self._connection, Over([], [], self._peak_bytes()))

    def hear(self, word: Any) -> None:
        """Take in what the consumer says of a batch. Raises where it wants no more of them."""
        if isinstance(word, Done):
            self._buffers[word.place].done(word)
        elif isinstance(word, Stop):
            raise _StoppedError

    def close(self) -> None:
        """Give back what the stages hold."""
        self._stages.sampler.close()
        self._store.close()

    def _hand_over(self, batch: Batch, rows: Tensor | None) -> None:
        """Write to the next buffer, once its last batch is done."""
        if not isinstance(batch, MiniBatch):
            raise UnsupportedError(
                "schedule=producer-consumer hands over batches of gnnbench's own blocks, not a"
                f" {type(batch).__name__}; take another sampler, or schedule=serial"
            )
        assert rows is not None
        buffer = self._buffers[self._next]
        self._next = (self._next + 1) % len(self._buffers)
        while not buffer.free or self._connection.poll():
            self.hear(receive(self._connection))
        buffer.await_reader()
        with self._timeline.span("memory_io", self._place):
            word = buffer.write(batch, rows)
        self._place += 1
        send(self._connection, word)

    def _peak_bytes(self) -> int:
        """Memory that this process holds by itself: of a GPU its allocator's peak and the buffers,
        of the host what it has now."""
        if self._job.device.type == "cuda":
            peak = int(torch.cuda.max_memory_allocated(self._job.device))
            return peak + sum(buffer.size for buffer in self._buffers)
        return private_bytes()


def _not_measured() -> int:
    """No epoch is run to see how much memory it leaves to a process that does not train."""
    raise UnsupportedError(
        "schedule=producer-consumer does not derive a cache's ratio from memory; give"
        " features.ratio a number, or take schedule=serial"
    )


def _check_share(start: Start) -> None:
    """Raise ``UnsupportedError`` unless MPS holds this process to its share."""
    if start.share == 100:
        return
    found = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    if found > start.processors * start.share / 100 + GRAIN:
        raise UnsupportedError(
            f"schedule.share={start.share} has no effect: the producer has {found} of"
            f" {start.processors} processors; start the MPS daemon before the run, and not with a"
            " share of its own"
        )


def send(connection: Connection, word: Any) -> None:
    """Send a word to the other process. Raises ``GoneError``."""
    try:
        connection.send_bytes(pickle.dumps(word))
    except ConnectionError:
        raise GoneError from None


def receive(connection: Connection) -> Any:
    """Wait for a word of the other process. Raises ``GoneError``."""
    try:
        word = connection.recv_bytes()
    except (EOFError, ConnectionError):
        raise GoneError from None
    return pickle.loads(word)


def serve(connection: Connection) -> None:
    """Say when all is built, then do what is asked until nobody asks any more."""
    producer: Producer | None = None
    while True:
        try:
            word = receive(connection)
            if isinstance(word, Start):
                producer = Producer(word, connection)
                send(connection, Over([], [], 0))
                continue
            assert producer is not None
            if isinstance(word, Epoch):
                producer.epoch(word)
            elif isinstance(word, Foresee):
                producer.foresee(word)
            else:
                with suppress(_StoppedError):  # the epoch was over before the word came
                    producer.hear(word)
        except GoneError:
            break
        except Exception as error:
            traceback.print_exc()
            send(connection, Failed.by(error))
    if producer is not None:
        producer.close()


def main() -> None:
    """Entry point; the arguments are ``{"parent": pid, "socket": number}``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    told = json.loads(sys.argv[1])
    die_with_parent(told["parent"])
    os.dup2(2, 1)  # the parent's output may be a protocol of its own
    with Connection(told["socket"]) as connection, suppress(GoneError):
        sys.path[:] = receive(connection)  # stages are found as in the parent
        serve(connection)
    sys.stderr.flush()
    os._exit(0)  # as a worker
