"""GNNLab's sampler: hop by hop, local ids from a table that is not cleared between batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import mini_batch
from gnnbench.kernels.streams import StreamOrder

LAST_VERSION = 65535  # 16 bits of an entry


class VersionedTable:
    """The table and the version of its current batch.

    ``words``    int64 ``[capacity]`` on the device that samples; its layout is drawn in
                 ``native/include/gnnbench/gnnlab.h``
    ``version``  of the batch sampled last; entries of another one count as empty

    Starts empty and grows to what batches need. Batches may be on different streams.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.words = torch.zeros(0, dtype=torch.int64, device=device)
        self.version = 0
        self._order = StreamOrder(self.words)

    def begin(self) -> int:
        """Version of the next batch; after the last one the table is zeroed and they start anew."""
        self._order.enter(self.words)
        if self.version == LAST_VERSION:
            self.words.zero_()
            self.version = 0
        self.version += 1
        return self.version

    def grow(self, capacity: int) -> None:
        """Give up what is in the table for a larger one."""
        self.words = torch.zeros(capacity, dtype=torch.int64, device=self.words.device)
        self.version = 0


def gnnlab(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    pick: str | PickSpec,
    frontier: str,
    key: int,
    batch: int,
    table: VersionedTable,
    with_positions: bool = False,
) -> MiniBatch:
    """Sample a mini-batch, all hops in one dispatch: per hop, then the versioned table.

    As in GNNLab's code, the table accumulates the nodes of a batch's hops. The next batch raises
    the version instead of clearing the table, which GNNLab's code does not. ``table`` on the device
    of the seeds; where it is too small it grows and the batch is done again, the same. Arguments
    and errors otherwise as :func:`gnnbench.kernels.sampler.hop_by_hop`; local ids beyond the seeds
    come in any order.
    """
    spec = PickSpec.of(pick)
    while True:
        with native_operators() as ops:
            *flat, needed = ops.gnnlab(
                graph_indptr,
                graph_indices,
                seeds,
                list(fanouts),
                *spec.arguments(),
                frontier,
                key,
                batch,
                with_positions,
                table.words,
                table.begin(),
            )
        if flat:
            return mini_batch(flat, seeds, spec, frontier, with_positions)
        table.grow(int(needed))
