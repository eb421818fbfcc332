"""Builds a mini-batch hop by hop from picked neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block, MiniBatch


class BlockBuilder:
    """Numbers the nodes of a batch and builds its blocks, in plain torch on the seeds' device.

    For a sampler that implements only the picks::

        builder = BlockBuilder(seeds, frontier)
        for fanout in fanouts:
            counts, neighbours = pick(builder.destinations, fanout)
            builder.add(counts, neighbours)
        return builder.batch()

    ``frontier``: ``cumulative`` (every node known so far is a destination of the next hop) or
    ``new`` (only nodes first met at the last one).
    """

    def __init__(self, seeds: Tensor, frontier: str = "cumulative") -> None:
        if frontier not in ("cumulative", "new"):
            raise UsageError(f"frontier must be 'cumulative' or 'new', not {frontier!r}")
        _check_whole("seeds", seeds)
        self._seeds, self._frontier = seeds, frontier
        self._nodes = seeds  # local id to global id, in order of first occurrence
        self._first_dst = 0  # local id of the next hop's first destination
        self._blocks: list[Block] = []
        self._edges = 0
        # With the new frontier a block begins with the rows of the previous hop.
        self._counts = seeds.new_empty(0, dtype=torch.int64)
        self._indices = seeds.new_empty(0, dtype=torch.int32)
        self._positions: Tensor | None = None

    @property
    def destinations(self) -> Tensor:
        """Global ids ``[n]`` whose neighbours the next hop picks, of the seeds' type."""
        return self._nodes[self._first_dst :]

    def add(self, counts: Tensor, neighbours: Tensor, positions: Tensor | None = None) -> None:
        """Add a hop.

        Args:
            counts: neighbours of each of ``destinations``, ``[n]``.
            neighbours: their global ids ``[e]``, grouped by destination.
            positions: offsets of the edges in the graph's ``indices`` ``[e]``; all hops or none.

        Raises ``UsageError`` if the arguments are inconsistent.
        """
        _check_whole("counts", counts)
        _check_whole("neighbours", neighbours)
        if positions is not None:
            _check_whole("positions", positions)
        if self._blocks and (positions is None) != (self._blocks[0].positions is None):
            raise UsageError("positions are given of some hops; give them of all hops or of none")
        if bool((counts < 0).any()):
            raise UsageError(f"counts holds {int(counts.min())}; a count is at least 0")
        num_dst = self.destinations.numel()
        if counts.numel() != num_dst:
            raise UsageError(f"{counts.numel()} counts are given for {num_dst} destinations")
        if int(counts.sum()) != neighbours.numel():
            raise UsageError(
                f"the counts add up to {int(counts.sum())} where {neighbours.numel()} neighbours"
                " are given"
            )
        if positions is not None and positions.numel() != neighbours.numel():
            raise UsageError(
                f"{positions.numel()} positions are given for {neighbours.numel()} neighbours"
            )
        known = self._nodes.numel()
        local = self._local_ids(neighbours.to(self._nodes.dtype))
        if self._frontier == "new":
            counts = torch.cat([self._counts, counts.long()])
            local = torch.cat([self._indices, local])
            if positions is not None and self._positions is not None:
                positions = torch.cat([self._positions, positions])
            self._counts, self._indices, self._positions = counts, local, positions
            self._first_dst = known
        indptr = torch.zeros(counts.numel() + 1, dtype=torch.int32, device=counts.device)
        indptr[1:] = counts.cumsum(0)
        self._edges += neighbours.numel()
        self._blocks.append(Block(indptr, local, self._nodes, counts.numel(), positions))

    def _local_ids(self, neighbours: Tensor) -> Tensor:
        """Map global ids to local ids int32; new nodes get the next ids."""
        known = self._nodes.numel()
        nodes, where = torch.cat([self._nodes, neighbours]).unique(return_inverse=True)
        local = torch.full((nodes.numel(),), -1, dtype=torch.int32, device=nodes.device)
        local[where[:known]] = torch.arange(known, dtype=torch.int32, device=nodes.device)
        new = local < 0
        count = nodes.numel() - known
        local[new] = torch.arange(known, known + count, dtype=torch.int32, device=nodes.device)
        self._nodes = torch.cat([self._nodes, nodes[new]])
        return local[where[known:]]

    def batch(self) -> MiniBatch:
        """Return the mini-batch of all hops, input layer first."""
        return MiniBatch(self._seeds, self._blocks[::-1], self._edges, frontier=self._frontier)


def _check_whole(name: str, values: Tensor) -> None:
    """Raise ``UsageError`` unless ``values`` are one-dimensional integers."""
    if not isinstance(values, Tensor):
        raise UsageError(f"{name} must be a tensor, not {type(values).__name__}")
    if values.ndim != 1 or values.dtype not in (torch.int32, torch.int64):
        raise UsageError(
            f"{name} must be int32 or int64 in one dimension, they are {str(values.dtype)[6:]}"
            f" {list(values.shape)}"
        )
