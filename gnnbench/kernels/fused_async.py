"""Asynchronous submission of Fused-Map: a batch is enqueued, and its sizes are read later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.fused import call, fused_map, trimmed
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import mini_batch
from gnnbench.kernels.streams import StreamOrder

LAST_VERSION = 255  # 8 bits of a table's entry, native/include/gnnbench/fused_entry.h


class SubmissionState:
    """State of consecutively submitted batches on a GPU, which is not cleared between them.

    ``memory``  uint8 on the GPU: tables and counters, laid out in
                ``native/bindings/cuda/fused_batch.h``
    ``sizes``   int64 in locked memory, of batches that were read, for reuse

    Batches may be on different streams.
    """

    # Unread sizes that a kernel may still write, so their memory is never freed.
    _abandoned: ClassVar[list[Tensor]] = []

    def __init__(self, device: torch.device | str) -> None:
        self.memory = torch.zeros(0, dtype=torch.uint8, device=device)
        self._version = LAST_VERSION
        self._shape: tuple[object, ...] = ()
        self._order = StreamOrder(self.memory)
        self.sizes: list[Tensor] = []

    def begin(self, shape: tuple[object, ...]) -> int:
        """Start the next batch and return its version; at version 1 the memory is zero.

        ``shape`` has all values that determine the memory layout; another shape restarts it.
        """
        self._order.enter(self.memory)
        if self._version == LAST_VERSION or self._shape != shape:
            self.memory.zero_()
            self._version, self._shape = 0, shape
        self._version += 1
        return self._version

    def fail(self) -> None:
        """Zero the memory before the next batch, because this one may be enqueued in part."""
        self._version = LAST_VERSION

    def grow(self, size: int) -> None:
        """Replace the memory by ``size`` zero bytes."""
        self.memory = torch.zeros(size, dtype=torch.uint8, device=self.memory.device)
        self._version = 0

    def take_sizes(self, hops: int) -> Tensor:
        """Locked memory for the sizes of a batch, which no other kernel writes."""
        count = 2 * hops + 1
        if self.sizes and self.sizes[-1].numel() == count:
            return self.sizes.pop()
        return torch.empty(count, dtype=torch.int64, pin_memory=True)

    @classmethod
    def abandon(cls, sizes: Tensor) -> None:
        """Keep the sizes of a batch that will not be read."""
        cls._abandoned.append(sizes)


class SubmittedFusedMap:
    """A batch that a GPU samples asynchronously; :meth:`read` waits for it.

    ``seeds`` are on the GPU and not empty. ``capacity`` of
    :class:`gnnbench.kernels.fused.HighWater` is not empty; the blocks are views of memory of that
    size. ``state`` is shared by all batches of a graph. Otherwise as
    :func:`gnnbench.kernels.fused.fused_map`, whose sampling errors are raised by :meth:`read`.
    """

    def __init__(
        self,
        graph_indptr: Tensor,
        graph_indices: Tensor,
        seeds: Tensor,
        fanouts: Sequence[int],
        *,
        pick: PickSpec,
        frontier: str,
        key: int,
        batch: int,
        with_positions: bool,
        capacity: Sequence[int],
        state: SubmissionState,
    ) -> None:
        self._work = (graph_indptr, graph_indices, seeds, fanouts)
        self._pick, self._frontier, self._with_positions = pick, frontier, with_positions
        self._key, self._batch = key, batch
        self._state = state
        self._sizes: Tensor | None = state.take_sizes(len(fanouts))
        self._sizes_ready = torch.cuda.Event()
        arguments = (*pick.arguments(), frontier, key, batch, with_positions, self._sizes)
        sizes = (graph_indptr.numel(), graph_indices.numel(), seeds.numel(), *capacity)
        shape = (*sizes, *fanouts, pick.name, *pick.walk, frontier)
        with torch.cuda.device(seeds.device):
            try:
                self._padded = self._submit(arguments, state.begin(shape), capacity)
                if len(self._padded) == 1:  # the state is too small
                    state.grow(int(self._padded[0]))
                    self._padded = self._submit(arguments, state.begin(shape), capacity)
            except BaseException:
                state.fail()
                raise
            self._sizes_ready.record()

    def _submit(
        self, arguments: tuple[object, ...], version: int, capacity: Sequence[int]
    ) -> list[Tensor]:
        state = (self._state.memory, version)
        return call("fused_map_asked", *self._work, *arguments, *state, capacity)

    def __del__(self) -> None:
        sizes = getattr(self, "_sizes", None)
        if sizes is not None:
            SubmissionState.abandon(sizes)

    def read(self) -> tuple[MiniBatch, list[int]]:
        """Wait for the sizes; returns the batch and the capacity it used. Call it once.

        A batch beyond the capacity is sampled again; it is complete on return, whatever was
        enqueued after its submission.
        """
        assert self._sizes is not None
        self._sizes_ready.synchronize()
        *used, fault = self._sizes.tolist()
        self._state.sizes.append(self._sizes)
        self._sizes = None
        seeds = self._work[2]
        if fault:  # too large, or broken: then this raises the error
            resampled = fused_map(
                *self._work,
                pick=self._pick,
                frontier=self._frontier,
                key=self._key,
                batch=self._batch,
                with_positions=self._with_positions,
            )
            torch.cuda.current_stream(seeds.device).synchronize()
            return resampled
        flat = trimmed(self._padded, seeds.numel(), used, self._frontier)
        return (
            mini_batch(flat, seeds, self._pick, self._frontier, self._with_positions),
            used,
        )
