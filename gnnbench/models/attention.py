"""Attention over the edges of a block."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.minibatch import Block


def attend(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
) -> Tensor:
    """As :class:`gnnbench.models.native.Attend` says."""
    sources, counts = block.indices.long(), block.indptr.diff().long()
    rows = torch.arange(block.num_dst, device=counts.device)
    ends = rows.repeat_interleave(counts, output_size=block.num_edges)
    scores = torch.nn.functional.leaky_relu(of_source[sources] + of_destination[ends], slope)
    none = scores.new_zeros(block.num_dst, scores.shape[1])
    at = ends.unsqueeze(1).expand_as(scores)
    largest = none.scatter_reduce(0, at, scores.detach(), "amax", include_self=False)
    shares = (scores - largest[ends]).exp()
    shares = shares / none.index_add(0, ends, shares)[ends]
    return z.new_zeros(block.num_dst, *z.shape[1:]).index_add(
        0, ends, z[sources] * shares.unsqueeze(2)
    )
