"""Groups nodes by owner, and restores their order in the owners' answers."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.distributed.partition.assignment import owner_of


class Route:
    """Requests for the nodes at ``places`` ``[n]``, grouped by owner.

    ``offsets``: of a ``Partition``, on the device of ``places``. ``requested`` ``[n]``: the places
    grouped by owner. ``to``: the number requested from each owner.
    """

    def __init__(self, places: Tensor, offsets: Tensor) -> None:
        owners = owner_of(places, offsets)
        self._order = torch.argsort(owners, stable=True)
        self.requested = places[self._order]
        self.counts = torch.bincount(owners, minlength=offsets.numel() - 1)
        self.to: list[int] = self.counts.tolist()

    def back(self, rows: Tensor) -> Tensor:
        """Reorder rows ``[n, ...]`` from the order of ``requested`` to that of the places."""
        reordered = torch.empty_like(rows)
        reordered[self._order] = rows
        return reordered

    def back_ragged(self, counts: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Reorder rows of ``counts`` ``[n]`` values each, as :meth:`back`.

        Returns the counts, then each of ``values`` ``[sum(counts)]``.
        """
        begins = counts.cumsum(0) - counts
        counts, begins = self.back(counts), self.back(begins)
        # The position of each output value in ``values``.
        shift = begins - (counts.cumsum(0) - counts)
        at = torch.repeat_interleave(shift, counts)
        at += torch.arange(at.numel(), device=at.device)
        return counts, *(value[at] for value in values)
