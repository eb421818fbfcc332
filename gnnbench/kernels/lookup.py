"""Look-up from global ids to slots that persists across batches: versioned, not cleared."""

from __future__ import annotations

import torch
from torch import Tensor

LAST = 2**31 - 1  # highest generation in an int32
PIECE = 1 << 24  # ids written at a time


class IdLookup:
    """Slots of the ids that were stored last.

    ``slots`` and ``generations`` are int32 ``[num_nodes]`` on the device: 8 bytes a node, which a
    cache's or a sampler's kernels may read as well. An id is known where its generation is the
    current one, so storing a batch writes one entry for each id and clears none.
    """

    def __init__(self, num_nodes: int, device: torch.device | str = "cpu") -> None:
        self.slots = torch.zeros(num_nodes, dtype=torch.int32, device=device)
        self.generations = torch.zeros(num_nodes, dtype=torch.int32, device=device)
        self.generation = 1  # no entry has it yet

    def remember(self, ids: Tensor) -> None:
        """Forget all ids, then store each of ``ids`` (int32 or int64 ``[n]``) with its position as
        slot. A repeated id gets the slot of any of its positions."""
        self.forget()
        device = self.slots.device
        for n, some in enumerate(ids.split(PIECE)):
            at = some.to(device).long()
            first = n * PIECE
            slots = torch.arange(first, first + at.numel(), dtype=torch.int32, device=device)
            self.put(at, slots)

    def remember_all(self) -> None:
        """Forget all ids, then store each node with its own id as slot."""
        self.forget()
        torch.arange(self.slots.numel(), out=self.slots)
        self.generations.fill_(self.generation)

    def put(self, ids: Tensor, slots: Tensor) -> None:
        """Add ``ids`` with ``slots`` (int32 ``[n]``) to the known ids."""
        at = ids.long()
        self.slots[at] = slots
        self.generations[at] = self.generation

    def drop(self, ids: Tensor) -> None:
        """Remove ``ids``."""
        self.generations[ids.long()] = 0

    def forget(self) -> None:
        """Remove all ids; the table is cleared only once in 2^31 calls."""
        if self.generation == LAST:
            self.generations.zero_()
            self.generation = 0
        self.generation += 1

    def remembered(self) -> None:
        """Advance the generation after a kernel has stored a batch under the next one."""
        self.generation += 1

    @property
    def last(self) -> bool:
        """Whether no generation is left, so that ``forget`` must come next."""
        return self.generation == LAST

    def find(self, ids: Tensor) -> Tensor:
        """Slots of ids ``[n]``: int32 ``[n]``, -1 for an unknown id."""
        at = ids.long()
        return self.slots[at].where(self.generations[at] == self.generation, -1)
