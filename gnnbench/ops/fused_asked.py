"""Fused-Map asked ahead: a batch is enqueued, and its sizes are read later."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.minibatch import MiniBatch
from gnnbench.ops.fused import fused_map, trimmed
from gnnbench.ops.library import load_native, native_errors
from gnnbench.ops.picks import PickSpec
from gnnbench.ops.sampler import mini_batch


class AskedFusedMap:
    """A batch that a GPU draws meanwhile; nothing waits for it before :meth:`read`.

    ``seeds`` are on the GPU, one at least; ``capacity`` of :class:`gnnbench.ops.fused.HighWater` is
    not empty, and the blocks are views of memory as large as it. Otherwise as
    :func:`gnnbench.ops.fused.fused_map`, whose errors of the draw come with :meth:`read`.
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
    ) -> None:
        load_native()
        self._work = (graph_indptr, graph_indices, seeds, fanouts)
        self._pick, self._frontier, self._with_positions = pick, frontier, with_positions
        self._key, self._batch = key, batch
        # From locked memory, so that the copy is waited for by nobody.
        place = torch.tensor([key, batch, seeds.numel()]).pin_memory()
        place = place.to(seeds.device, non_blocking=True)
        with native_errors(), torch.cuda.device(seeds.device):
            *self._padded, sizes = torch.ops.gnnbench.fused_map_padded(
                *self._work, *pick.arguments(), frontier, place, with_positions, capacity
            )
            self._sizes = torch.empty(sizes.shape, dtype=sizes.dtype, pin_memory=True)
            self._sizes.copy_(sizes, non_blocking=True)
            self._told = torch.cuda.Event()
            self._told.record()

    def read(self) -> tuple[MiniBatch, list[int]]:
        """Wait for the sizes: the batch, and what it took as ``capacity`` has it.

        A batch beyond the capacity is drawn again, and waited for: it is there on return whatever
        was enqueued since it was asked for.
        """
        self._told.synchronize()
        *took, fault = self._sizes.tolist()
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
