"""Fused-Map asked ahead: a batch is enqueued, and its sizes are read later."""

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
    """What batches asked one after another are drawn with on a GPU; none of it is cleared between.

    ``memory``  uint8 on the GPU: tables and counters, laid out in
                ``native/bindings/cuda/fused_batch.h``
    ``sizes``   int64 in locked memory, of batches that were read, for those to come

    Batches may be on different streams.
    """

    # Sizes that nobody read, which a kernel may still write: their memory is not given back.
    _left: ClassVar[list[Tensor]] = []

    def __init__(self, device: torch.device | str) -> None:
        self.memory = torch.zeros(0, dtype=torch.uint8, device=device)
        self._version = LAST_VERSION
        self._shape: tuple[object, ...] = ()
        self._order = StreamOrder(self.memory)
        self.sizes: list[Tensor] = []

    def begin(self, shape: tuple[object, ...]) -> int:
        """Version of the next batch; all is zeros where it is version 1.

        ``shape`` is what the layout of the memory depends on: a batch of another one begins anew.
        """
        self._order.enter(self.memory)
        if self._version == LAST_VERSION or self._shape != shape:
            self.memory.zero_()
            self._version, self._shape = 0, shape
        self._version += 1
        return self._version

    def fail(self) -> None:
        """A batch was perhaps enqueued in part: the next one begins with zeros."""
        self._version = LAST_VERSION

    def grow(self, size: int) -> None:
        """Give up what is there for so many bytes."""
        self.memory = torch.zeros(size, dtype=torch.uint8, device=self.memory.device)
        self._version = 0

    def take_sizes(self, hops: int) -> Tensor:
        """Locked memory for the sizes of a batch, which no kernel writes any more."""
        count = 2 * hops + 1
        if self.sizes and self.sizes[-1].numel() == count:
            return self.sizes.pop()
        return torch.empty(count, dtype=torch.int64, pin_memory=True)

    @classmethod
    def leave(cls, sizes: Tensor) -> None:
        """Keep the sizes of a batch that nobody will read."""
        cls._left.append(sizes)


class SubmittedFusedMap:
    """A batch that a GPU draws meanwhile; nothing waits for it before :meth:`read`.

    ``seeds`` are on the GPU, one at least; ``capacity`` of
    :class:`gnnbench.kernels.fused.HighWater` is
    not empty, and the blocks are views of memory as large as it; ``state`` is that of all batches
    asked of a graph. Otherwise as :func:`gnnbench.kernels.fused.fused_map`, whose errors of the
    draw
    come with :meth:`read`.
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
        self._told = torch.cuda.Event()
        how = (*pick.arguments(), frontier, key, batch, with_positions, self._sizes)
        sizes = (graph_indptr.numel(), graph_indices.numel(), seeds.numel(), *capacity)
        shape = (*sizes, *fanouts, pick.name, *pick.walk, frontier)
        with torch.cuda.device(seeds.device):
            try:
                self._padded = self._ask(how, state.begin(shape), capacity)
                if len(self._padded) == 1:  # the state is too small
                    state.grow(int(self._padded[0]))
                    self._padded = self._ask(how, state.begin(shape), capacity)
            except BaseException:
                state.fail()
                raise
            self._told.record()

    def _ask(self, how: tuple[object, ...], version: int, capacity: Sequence[int]) -> list[Tensor]:
        state = (self._state.memory, version)
        return call("fused_map_asked", *self._work, *how, *state, capacity)

    def __del__(self) -> None:
        sizes = getattr(self, "_sizes", None)
        if sizes is not None:
            SubmissionState.leave(sizes)

    def read(self) -> tuple[MiniBatch, list[int]]:
        """Wait for the sizes: the batch, and what it took as ``capacity`` has it; once.

        A batch beyond the capacity is drawn again, and waited for: it is there on return whatever
        was enqueued since it was asked for.
        """
        assert self._sizes is not None
        self._told.synchronize()
        *took, fault = self._sizes.tolist()
        self._state.sizes.append(self._sizes)
        self._sizes = None
        seeds = self._work[2]
        if fault:  # too large, or broken: then this raises the error
            found = fused_map(
                *self._work,
                pick=self._pick,
                frontier=self._frontier,
                key=self._key,
                batch=self._batch,
                with_positions=self._with_positions,
            )
            torch.cuda.current_stream(seeds.device).synchronize()
            return found
        flat = trimmed(self._padded, seeds.numel(), took, self._frontier)
        return (
            mini_batch(flat, seeds, self._pick, self._frontier, self._with_positions),
            took,
        )
