"""Ordering of accesses to GPU memory from several streams."""

from __future__ import annotations

import torch
from torch import Tensor


class StreamOrder:
    """Orders the uses of state that outlives a batch: each waits for the one before.

    Work of one stream is done in order. A use on another stream than the last one waits there for
    all that was enqueued on the last; as long as the stream stays the same it costs one look at it.
    ``state`` is what was just made, on the current stream. Nothing happens on a CPU.
    """

    def __init__(self, *state: Tensor) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._handle = -1
        self._device = state[0].get_device()  # -1: a CPU
        self.enter(*state)

    def enter(self, *state: Tensor) -> None:
        """The work enqueued from now on uses ``state``, tensors of one device."""
        device = self._device
        if device < 0:
            return
        handle = torch._C._cuda_getCurrentRawStream(device)
        if handle == self._handle:
            return
        stream = torch.cuda.current_stream(device)
        if self._stream is not None:
            stream.wait_stream(self._stream)
            for tensor in state:  # the allocator knows of the stream that they were made on alone
                tensor.record_stream(stream)
        self._stream, self._handle = stream, handle
