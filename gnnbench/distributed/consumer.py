"""The consumer's side: it trains on the batches of a producer's process, and ends that process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from gnnbench.core.cell import Until
from gnnbench.core.counters import SYNCHRONISATIONS
from gnnbench.core.job import Job
from gnnbench.distributed.producer_client import ProducerClient
from gnnbench.distributed.producer_messages import BuildProducer, ForeseeEpochs, RequestDone
from gnnbench.pipelines.batch_buffer import ConsumerBuffer
from gnnbench.pipelines.schedule import Schedule, Stages
from gnnbench.pipelines.utilization import add_rows

if TYPE_CHECKING:
    from gnnbench.distributed.producer_start import StartedProducer
    from gnnbench.measure.timeline import Timeline


class Consumer(Schedule):
    """Trains on the batches of a producer's process, which builds its stages meanwhile.

    Errors of that process are raised here (``ProducerClient``). The producer ends with the thread
    that started it.
    """

    def __init__(self, job: Job, message: BuildProducer, started: StartedProducer) -> None:
        self._job = job
        buffers = [ConsumerBuffer(job.device) for _ in range(message.buffers)]
        self.client = ProducerClient(started, buffers, "the producer", message)

    @property
    def pid(self) -> int:
        """Process id of the producer."""
        return self.client.process.pid

    @property
    def peak_bytes(self) -> int:  # type: ignore[override]
        """Peak of the other processes' private memory, in bytes."""
        return self.client.peak_bytes

    def start(self, stages: Stages) -> None:
        """Wait until the producer is built."""
        self.client.await_built()

    def foresee(self, epochs: Sequence[int]) -> None:
        """Prepare the producer's store, too, for the epochs that run next."""
        self.client.stop()
        self.client.request(ForeseeEpochs(tuple(epochs)))
        self.client.receive()

    def epoch(
        self,
        epoch: int,
        batches: list[Tensor],
        stages: Stages,
        timeline: Timeline,
        until: Until,
    ) -> None:
        """Train on each batch as it arrives; the spans of other processes have their own lanes.

        A buffer is released when the trainer and ``stages.keep`` have returned. The last buffers
        keep their content until the next epoch.
        """
        if not batches:
            return
        self.client.begin_epoch(epoch, batches, trace=timeline.producer_trace)
        position = 0
        try:
            while not isinstance(received := self.client.receive(), RequestDone):
                message, buffer = received
                with timeline.span("memory_io", position):
                    batch, rows = buffer.batch(message)
                if stages.trainer is not None:
                    with timeline.span("compute", position):
                        stages.trainer.step(batch, rows)
                stages.keep(batch, rows)
                self.client.release(message.buffer)
                position += 1
        except BaseException:
            self.client.stop()
            raise
        timeline.add(received.spans)
        add_rows(self._job.counts, received.counts)
        self._job.counts.add("schedule", SYNCHRONISATIONS, position, "consumer")

    def close(self) -> None:
        """End the producer's process, and unmap its memory."""
        self.client.close()
