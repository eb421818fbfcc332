"""Seeds that repeat within a batch, as from loaders that draw with replacement."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch


def distinct(seeds: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return unique seeds in order of first occurrence, and the index of each seed among them.

    The indices, int64 ``[n]``, are None if no seed repeats.
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


def repeat_seeds(batch: MiniBatch, occurrences: Tensor) -> MiniBatch:
    """Expand a batch of unique seeds to one with repeated seeds.

    ``occurrences`` int64 ``[n]``: index of each seed among the batch's seeds. Every occurrence
    becomes a node with the seed's sampled in-edges, as in DGL and PyG, so outputs are equal.
    Out-edges of a repeated seed start at its first occurrence.
    """
    known = batch.seeds.numel()
    device = batch.seeds.device
    occurrences = occurrences.to(device)
    first = torch.full((known,), occurrences.numel(), device=device)
    first.scatter_reduce_(
        0, occurrences, torch.arange(occurrences.numel(), device=occurrences.device), "amin"
    )
    blocks = [_repeat(block, occurrences, first) for block in batch.blocks]
    edges = [block.num_edges for block in blocks]
    return MiniBatch(
        batch.seeds[occurrences],
        blocks,
        edges[0] if batch.frontier == "new" and edges else sum(edges),
        batch.extra,
        batch.frontier,
        batch.number,
    )


def _repeat(block: Block, occurrences: Tensor, first: Tensor) -> Block:
    known, added = first.numel(), occurrences.numel() - first.numel()
    others = torch.arange(known, block.num_dst, device=occurrences.device)
    rows = torch.cat([occurrences, others])
    begin, count = block.indptr[:-1].long()[rows], block.indptr.diff().long()[rows]
    indptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    shift = (begin - indptr[:-1]).repeat_interleave(count)
    edges = torch.arange(shift.numel(), device=rows.device) + shift
    sources = torch.cat([first, torch.arange(known, block.num_src, device=rows.device) + added])
    nodes = block.src_nodes
    return Block(
        indptr.to(block.indptr.dtype),
        sources[block.indices.long()[edges]].to(block.indices.dtype),
        torch.cat([nodes[:known][occurrences], nodes[known:]]),
        block.num_dst + added,
        None if block.positions is None else block.positions[edges],
        None if block.weights is None else block.weights[edges],
    )
