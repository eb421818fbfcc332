"""One look-up of global ids kept from batch to batch: id to slot, versioned, never cleared."""

from __future__ import annotations

import torch
from torch import Tensor

LAST = 2**31 - 1  # the highest generation that an int32 can tell
PIECE = 1 << 24  # ids that are remembered at a time: of a cache's there are as many as rows


class IdLookup:
    """Slots of the ids that were last remembered.

    ``slots`` and ``generations`` are int32 ``[num_nodes]`` on the device: 8 bytes a node, which a
    cache's or a sampler's kernels may read as well. An id is known where its generation is the
    present one, so that remembering a batch writes as many entries as it has ids and clears none.
    """

    def __init__(self, num_nodes: int, device: torch.device | str = "cpu") -> None:
        self.slots = torch.zeros(num_nodes, dtype=torch.int32, device=device)
        self.generations = torch.zeros(num_nodes, dtype=torch.int32, device=device)
        self.generation = 1  # of no entry yet

    def remember(self, ids: Tensor) -> None:
        """Forget all ids, then give each of ``ids`` (int32 or int64 ``[n]``, anywhere) its place
        as a slot.

        Of an id that is there more than once any place may be its slot.
        """
        self.forget()
        device = self.slots.device
        for n, some in enumerate(ids.split(PIECE)):
            at = some.to(device).long()
            first = n * PIECE
            slots = torch.arange(first, first + at.numel(), dtype=torch.int32, device=device)
            self.put(at, slots)

    def remember_all(self) -> None:
        """Forget all ids, then give each node its own id as a slot."""
        self.forget()
        torch.arange(self.slots.numel(), out=self.slots)
        self.generations.fill_(self.generation)

    def put(self, ids: Tensor, slots: Tensor) -> None:
        """Know ``ids`` as well, under ``slots`` (int32 ``[n]``), beside those that are known."""
        at = ids.long()
        self.slots[at] = slots
        self.generations[at] = self.generation

    def drop(self, ids: Tensor) -> None:
        """Know all but ``ids``."""
        self.generations[ids.long()] = 0

    def forget(self) -> None:
        """Know no id; once in 2^31 calls the table is cleared."""
        if self.generation == LAST:
            self.generations.zero_()
            self.generation = 0
        self.generation += 1

    def remembered(self) -> None:
        """A kernel has left each id of a batch its slot, under the next generation."""
        self.generation += 1

    @property
    def last(self) -> bool:
        """Whether no generation is left for what is remembered next: forget first."""
        return self.generation == LAST

    def find(self, ids: Tensor) -> Tensor:
        """Slots of ids ``[n]``: int32 ``[n]``, -1 of one that is not known."""
        at = ids.long()
        return self.slots[at].where(self.generations[at] == self.generation, -1)
