"""A sampler in a process of its own, which samples on the host ahead of the producer.

PyTorch-Direct, section 3.3: the sampler's process hands the list of node ids over to the producer,
which copies it to the GPU by DMA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from gnnbench.core.errors import HostMemoryError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.distributed.producer_client import ProducerClient
from gnnbench.distributed.producer_messages import BuildProducer, Part, RequestDone
from gnnbench.distributed.producer_start import start
from gnnbench.kernels.locked import lock, unlock
from gnnbench.pipelines.batch_buffer import BufferFilled, ConsumerBuffer
from gnnbench.pipelines.streams import current_stream, side_stream
from gnnbench.sampling.native import count_off_device
from gnnbench.sampling.stage import SamplerStage

if TYPE_CHECKING:
    from gnnbench.sampling.stage import SamplerSpec

HOST = torch.device("cpu")


class HostBuffer(ConsumerBuffer):
    """A buffer in host memory, locked for a GPU; its batches are copied to ``target``."""

    def __init__(self, target: torch.device) -> None:
        super().__init__(HOST)
        self._target = target

    def open(self, message: BufferFilled) -> None:
        """Map the buffer's memory, and lock it. Raises ``HostMemoryError``."""
        super().open(message)
        if message.address is None or self._target.type == "cpu":
            return
        assert self._memory is not None
        if code := lock(self._memory.whole):
            super().close()
            raise HostMemoryError(
                f"{message.size} bytes of sampled batches cannot be locked for the GPU (CUDA error"
                f" {code}); raise the limit of locked memory (ulimit -l), or give"
                " schedule.processes=2"
            )

    def take(self, message: BufferFilled) -> MiniBatch:
        """Copy the batch to the target in one transfer; the buffer is unused on return."""
        assert self._memory is not None
        used = self._memory.whole[: message.used]
        copied = used.clone() if self._target.type == "cpu" else self._sent(used)
        return message.batch.mapped(lambda tensor_slice: tensor_slice.of(copied))

    def _sent(self, used: Tensor) -> Tensor:
        """Copy to the GPU apart from the gather that still runs, and wait for the copy alone."""
        own, current = side_stream(self._target, "sample"), current_stream(self._target)
        with own.entered():
            copied = used.to(self._target, non_blocking=True)
        mark = own.mark()
        current.wait_for(mark)
        copied.record_stream(torch.cuda.current_stream(self._target))
        assert mark is not None
        mark.synchronize()
        return copied

    def close(self) -> None:
        """Unlock and unmap the memory."""
        if self._memory is not None and self._target.type == "cuda":
            unlock(self._memory.whole)
        super().close()


class RemoteSampler(SamplerStage):
    """The batches of a sampler's process, in the producer that started it.

    ``message`` is the producer's own. The process draws on the host what the cell's sampler draws
    with ``topology=cpu``.
    """

    ahead: ClassVar[bool] = True

    def __init__(self, spec: SamplerSpec, job: Job, message: BuildProducer) -> None:
        super().__init__(spec, job)
        buffers = [HostBuffer(job.device) for _ in range(message.buffers)]
        cell = replace(message.cell, device="cpu")
        build = replace(message, cell=cell, device=None, part=Part.SAMPLE)
        self.client = ProducerClient(start(), buffers, "the sampler", build)
        self._left = 0  # batches of the epoch that have not been taken
        self._next: tuple[BufferFilled, HostBuffer] | None = None

    def expect(self, epoch: int, batches: Sequence[Tensor]) -> None:
        """Have the process sample an epoch; it stays as many batches ahead as it has buffers."""
        self.begin_epoch(epoch, batches, range(len(batches)))

    def begin_epoch(self, epoch: int, batches: Sequence[Tensor], numbers: Sequence[int]) -> None:
        """Have the process sample batches of an epoch; ``numbers`` are their places in it."""
        self._next, self._left = None, len(batches)
        if batches:
            self.client.begin_epoch(epoch, batches, numbers)

    def await_batch(self) -> None:
        """Wait for the next batch, so that ``sample`` only copies it."""
        if self._next is None:
            received = self.client.receive()
            assert not isinstance(received, RequestDone)
            self._next = received

    def sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        """Take the next batch of the epoch, which is batch ``number``."""
        self.await_batch()
        assert self._next is not None
        (message, buffer), self._next = self._next, None
        batch = buffer.take(message)
        assert batch.number == number
        self.client.release(message.buffer)
        self._left -= 1
        if self.job.device.type == "cuda":
            count_off_device(self.job, batch, "host")
        return batch

    def finish(self) -> RequestDone | None:
        """Return counts and spans of the epoch, or None if its last batches were not taken."""
        if self._left or not self.client.is_busy:
            self.client.stop()
            return None
        done = self.client.receive()
        assert isinstance(done, RequestDone)
        return done

    def close(self) -> None:
        """End the process."""
        self.client.close()
