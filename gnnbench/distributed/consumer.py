"""The consumer's side: it starts the producer, trains on what it is handed, and ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import MEASURES
from gnnbench.core.errors import GnnbenchError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import MiniBatch
from gnnbench.distributed.producer import GoneError, Start, receive, send
from gnnbench.measure.machine import oom_kills
from gnnbench.pipelines.batch_buffer import Epoch, Failed, Foresee, Handed, InBuffer, Over, Stop
from gnnbench.pipelines.schedule import Schedule, Stages

if TYPE_CHECKING:
    from gnnbench.distributed.producer_start import Started
    from gnnbench.measure.timeline import Timeline

END_S = 10.0


class ProducerDiedError(GnnbenchError):
    """The producer's process has ended by itself."""


class Consumer(Schedule):
    """Trains on the batches of a producer's process (``begun``), which is built with the object.

    An exception in the producer is raised here, with its type and text where this process knows it.
    Where its process has died ``ProducerDiedError`` is, or ``MemoryError`` where the kernel killed
    it for lack of memory. ``buffers`` and ``share`` are those of the spec. The producer lives no
    longer than the thread that started it.
    """

    def __init__(self, job: Job, buffers: int, share: int, begun: Started) -> None:
        self._job, device = job, job.device
        self.peak_bytes = 0
        self._buffers = [InBuffer(device) for _ in range(buffers)]
        self._oom_kills = oom_kills()
        self._process, self._connection = begun.process, begun.connection
        on_gpu, processors = device.type == "cuda", 0
        if on_gpu:
            processors = torch.cuda.get_device_properties(device).multi_processor_count
        number = device.index if on_gpu else None
        threads = torch.get_num_threads()
        self._built = False  # as far as the producer has said
        self._unbuilt: Exception | None = None  # why not
        self._owes = False  # the word that what it was asked for is over, or has failed
        self._say(sys.path)
        self._ask(Start(job.cell, job.graph, threads, number, processors, buffers, share))

    @property
    def pid(self) -> int:
        """Process id of the producer."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until the producer is built. Raises what it could not be built for, each time."""
        if self._unbuilt is not None:
            raise self._unbuilt
        if not self._built:
            try:
                self._heard()
            except Exception as error:
                self._unbuilt = error
                raise
            self._built = True

    def foresee(self, epoch: int) -> None:
        """Tell the producer's store, too, which epoch is run next."""
        self._give_up()
        self._ask(Foresee(epoch))
        self._heard()

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Compute each batch as it comes; the producer's spans are on a lane of its own.

        A buffer is given back when the trainer and the hook that keeps batches are done with it.
        The last ones stay as they are until the next epoch.
        """
        if not batches:
            return
        self._give_up()
        seeds = torch.cat(batches).cpu().numpy()
        self._ask(Epoch(epoch, seeds, [b.numel() for b in batches]))
        place = 0
        try:
            while isinstance(word := self._heard(), Handed):
                batch, rows = self._taken(word, timeline, place)
                if stages.trainer is not None:
                    with timeline.span("compute", place):
                        stages.trainer.step(batch, rows)
                stages.keep(batch, rows)
                self._say(self._buffers[word.place].done(word.place))
                place += 1
        except BaseException:
            self._give_up()
            raise
        timeline.add(word.spans)
        for stage, name, where, value in word.counts:
            self._job.counts.add(stage, MEASURES[name], value, where)

    def close(self) -> None:
        """End the producer's process, and let go of its memory."""
        for buffer in self._buffers:
            buffer.close()
        self._connection.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _taken(self, word: Handed, timeline: Timeline, place: int) -> tuple[MiniBatch, Tensor]:
        buffer = self._buffers[word.place]
        buffer.open(word)
        with timeline.span("memory_io", place):
            return buffer.batch(word)

    def _give_up(self) -> None:
        """Have the producer end what it is at, whatever it has handed over meanwhile."""
        self.ready()
        if not self._owes:
            return
        with suppress(Exception):  # whatever it fails by is not why the epoch is given up
            self._say(Stop())
            while isinstance(word := self._heard(), Handed):
                self._buffers[word.place].open(word)

    def _ask(self, word: Any) -> None:
        self._say(word)
        self._owes = True

    def _say(self, word: Any) -> None:
        try:
            send(self._connection, word)
        except GoneError:
            raise self._death() from None

    def _heard(self) -> Handed | Over:
        """The producer's next word. Raises what it failed by."""
        try:
            word = receive(self._connection)
        except GoneError:
            raise self._death() from None
        if isinstance(word, Failed):
            self._owes = False
            raise word.exception()
        if isinstance(word, Over):
            self._owes = False
            self.peak_bytes = max(self.peak_bytes, word.peak_bytes)
            return word
        assert isinstance(word, Handed)
        return word

    def _death(self) -> Exception:
        """What to raise where the producer has ended by itself."""
        self._owes = False
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            return MemoryError("cannot allocate memory: the kernel killed the producer for it")
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        return ProducerDiedError(
            f"the producer's process died {how}; run again, or take schedule=serial"
        )
