"""Nodes grouped by who owns them, and what comes back put into their order again."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.distributed.partition.assignment import owner_of


class Route:
    """Where each of ``places`` ``[n]`` is asked for; ``offsets`` as of a ``Partition``, there too.

    ``asked`` ``[n]``: the places grouped by owner; ``to``: how many each owner is asked for.
    """

    def __init__(self, places: Tensor, offsets: Tensor) -> None:
        owners = owner_of(places, offsets)
        self._order = torch.argsort(owners, stable=True)
        self.asked = places[self._order]
        self.counts = torch.bincount(owners, minlength=offsets.numel() - 1)
        self.to: list[int] = self.counts.tolist()

    def back(self, rows: Tensor) -> Tensor:
        """Rows in the order of ``asked`` ``[n, ...]``, put into that of the places."""
        found = torch.empty_like(rows)
        found[self._order] = rows
        return found

    def back_ragged(self, counts: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Rows of ``counts`` ``[n]`` values each, in the order of ``asked``, put into that of the
        places: the counts, then each of ``values`` ``[sum(counts)]``."""
        begins = counts.cumsum(0) - counts
        counts, begins = self.back(counts), self.back(begins)
        # Where each value of the answer is among those that came.
        shift = begins - (counts.cumsum(0) - counts)
        at = torch.repeat_interleave(shift, counts)
        at += torch.arange(at.numel(), device=at.device)
        return counts, *(value[at] for value in values)
