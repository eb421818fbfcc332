"""Seeds that repeat within a batch, as loaders that draw with replacement give them."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch


def distinct(seeds: Tensor) -> tuple[Tensor, Tensor | None]:
    """The different seeds in the order of their first occurrence, and each seed's place there.

    The places, int64 ``[n]``, are None where no seed repeats.
    """
    values, inverse = torch.unique(seeds, return_inverse=True)
    if values.numel() == seeds.numel():
        return seeds, None
    at = torch.arange(seeds.numel(), device=seeds.device)
    first = torch.full_like(values, seeds.numel(), dtype=torch.int64)
    first.scatter_reduce_(0, inverse, at, "amin")
    order = first.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=seeds.device)
    return seeds[first[order]], rank[inverse]


def repeat_seeds(batch: MiniBatch, places: Tensor) -> MiniBatch:
    """A batch of different seeds as one in which seeds repeat.

    ``places`` int64 ``[n]``: which of the batch's seeds each of the n seeds is. Every occurrence is
    a node of its own with the seed's sampled in-edges, as in DGL and PyG, so its output is the
    seed's output. Edges that leave a repeated seed leave its first occurrence.
    """
    known = batch.seeds.numel()
    places = places.to(batch.seeds.device)
    first = torch.full((known,), places.numel(), device=places.device)
    first.scatter_reduce_(0, places, torch.arange(places.numel(), device=places.device), "amin")
    blocks = [_repeat(block, places, first) for block in batch.blocks]
    edges = [block.num_edges for block in blocks]
    return MiniBatch(
        batch.seeds[places],
        blocks,
        edges[0] if batch.frontier == "new" and edges else sum(edges),
        batch.extra,
        batch.frontier,
        batch.number,
    )


def _repeat(block: Block, places: Tensor, first: Tensor) -> Block:
    known, added = first.numel(), places.numel() - first.numel()
    others = torch.arange(known, block.num_dst, device=places.device)
    rows = torch.cat([places, others])
    begin, count = block.indptr[:-1].long()[rows], block.indptr.diff().long()[rows]
    indptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    shift = (begin - indptr[:-1]).repeat_interleave(count)
    edges = torch.arange(shift.numel(), device=rows.device) + shift
    sources = torch.cat([first, torch.arange(known, block.num_src, device=rows.device) + added])
    nodes = block.src_nodes
    return Block(
        indptr.to(block.indptr.dtype),
        sources[block.indices.long()[edges]].to(block.indices.dtype),
        torch.cat([nodes[:known][places], nodes[known:]]),
        block.num_dst + added,
        None if block.positions is None else block.positions[edges],
        None if block.weights is None else block.weights[edges],
    )
