"""A rank's whole batches out of a producer's process of its own.

PyTorch-Direct, section 3.4: each GPU has a sampler, a producer and a consumer, and the consumers
train together.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gnnbench.core.counters import SYNCHRONISATIONS
from gnnbench.distributed.producer_client import ProducerClient
from gnnbench.distributed.producer_messages import RequestDone
from gnnbench.distributed.whole_epoch import WholeBatchEpoch, own_numbers
from gnnbench.pipelines.batch_buffer import ConsumerBuffer
from gnnbench.pipelines.utilization import add_rows


@dataclass
class ProducedBatchEpoch(WholeBatchEpoch):
    """An epoch as one rank runs it: it trains on the batches of ``client``'s process."""

    client: ProducerClient[ConsumerBuffer]

    def run(self, epoch: int, batches: list[Tensor]) -> None:
        """Train on the rank's batches as they arrive; ``batches`` are the seeds of all ranks."""
        own = own_numbers(len(batches), self.rank, self.ranks)
        if own:
            self.client.begin_epoch(epoch, [batches[number] for number in own], own)
            try:
                done = self._train_on_all(batches)
            except BaseException:
                self.client.stop()
                raise
            self.timeline.add(s._replace(lane=f"{self._lane} {s.lane}") for s in done.spans)
            add_rows(self.group.counts, done.counts)
            self.group.counts.add("schedule", SYNCHRONISATIONS, len(own), "consumer")
        self._finish(batches, len(own))

    def _train_on_all(self, batches: list[Tensor]) -> RequestDone:
        while not isinstance(received := self.client.receive(), RequestDone):
            message, buffer = received
            number = message.batch.number
            with self.timeline.span("memory_io", number, self._lane):
                batch, rows = buffer.batch(message)
            loss = self._train(number, batches, batch, rows)
            self.stages.keep(batch, rows)
            self.trained.append((number, batch.sizes(), loss))
            self.client.release(message.buffer)
        return received
