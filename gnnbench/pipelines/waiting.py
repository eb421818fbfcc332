"""Waiting batches of a window whose topology is in host memory (FastGL, section 6.5)."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.minibatch import Batch, Hop, MiniBatch, Sizes
from gnnbench.pipelines.streams import Mark, current_stream, side_stream


class WaitingBatch(Batch[Tensor]):
    """A batch that waits: its topology on the host, its input nodes on the device until ordered.

    ``left`` marks the end of the copy to the host, ``fetched`` that of the copy back.
    """

    def __init__(self, batch: MiniBatch, host: MiniBatch | None, left: Mark) -> None:
        self.number, self.blocks = batch.number, []
        self._ids: Tensor | None = batch.input_nodes
        self.host, self.left = host, left
        self.batch: MiniBatch | None = None
        self.fetched: Mark = None

    @property
    def input_nodes(self) -> Tensor:
        """Global ids ``[n]`` on the device; until the window is in order."""
        assert self._ids is not None, "the ids of a waiting batch were freed"
        return self._ids

    def free_ids(self) -> None:
        """Free the ids of the input nodes."""
        self._ids = None

    def sizes(self) -> Sizes:
        """Sizes of a batch that is taken first."""
        raise UnsupportedError("a waiting batch must be taken before it is counted")

    def hops(self) -> list[Hop]:
        """Edges of a batch that is taken first."""
        raise UnsupportedError("a waiting batch must be taken before its edges are read")

    def tensors(self) -> list[Tensor]:
        """All tensors, on the host and on the device."""
        held = [t for b in (self.host, self.batch) if b is not None for t in b.tensors()]
        return held if self._ids is None else [*held, self._ids]


class HostBatches:
    """Moves waiting batches to the host, and the next one back while the one before it runs."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._copying = side_stream(device, "topology")

    def put(self, batch: Batch) -> WaitingBatch:
        """Copy the topology to locked host memory; the host does not wait.

        Raises ``UnsupportedError`` for a batch of other blocks than gnnbench's.
        """
        if not isinstance(batch, MiniBatch):
            raise UnsupportedError(
                "order.waiting=host moves gnnbench's own blocks; take one of its samplers"
            )
        host = batch.mapped(_to_host)
        return WaitingBatch(batch, host, current_stream(self._device).mark())

    def take(self, sampled: list[Batch], index: int) -> MiniBatch:
        """Put ``sampled[index]`` on the device, in its place, and begin to fetch the next one."""
        for one in sampled[index:]:
            if isinstance(one, WaitingBatch):
                one.free_ids()
        waiting = sampled[index]
        assert isinstance(waiting, WaitingBatch)
        self._fetch(waiting)
        batch = waiting.batch
        assert batch is not None
        if waiting.fetched is not None:
            current_stream(self._device).wait_for(waiting.fetched)
            stream = torch.cuda.current_stream(self._device)
            for ids in (batch.seeds, *(block.src_nodes for block in batch.blocks)):
                ids.record_stream(stream)  # the recorder of checked batches keeps them
        sampled[index] = batch
        if index + 1 < len(sampled):
            following = sampled[index + 1]
            assert isinstance(following, WaitingBatch)
            self._fetch(following)
        return batch

    def _fetch(self, waiting: WaitingBatch) -> None:
        if waiting.batch is not None:
            return
        host = waiting.host
        assert host is not None
        if waiting.left is not None:
            self._copying.wait_for(waiting.left)
        with self._copying.entered():
            waiting.batch = host.to(self._device)
        waiting.fetched, waiting.host = self._copying.mark(), None

    def release(self, sampled: list[Batch], index: int) -> None:
        """Drop a batch that ran; of the last one its input nodes remain."""
        batch = sampled[index]
        assert isinstance(batch, MiniBatch)
        # Its memory returns to the stream of the copies, which must not write to it before it ran.
        if (done := current_stream(self._device).mark()) is not None:
            self._copying.wait_for(done)
        ran = WaitingBatch(batch, None, None)
        if index + 1 < len(sampled):
            ran.free_ids()
        sampled[index] = ran


def _to_host(t: Tensor) -> Tensor:
    if not t.is_cuda:
        return t
    host = torch.empty(t.shape, dtype=t.dtype, pin_memory=True)
    return host.copy_(t, non_blocking=True)
