"""A block's transpose, which gradients follow from destinations to sources."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, Transposed
from gnnbench.kernels.library import native_operators


def transposed(block: Block) -> Transposed:
    """The block's transpose, made once and kept by the block, so that all backward passes share it.

    A stable sort of the edges by source: the same for any number of threads. Raises ``UsageError``
    for a block that is broken.
    """
    if block.transposed is None:
        with native_operators() as ops:
            block.transposed = Transposed(
                *ops.transpose(block.indptr, block.indices, block.num_src)
            )
    return block.transposed


def edge_dst(block: Block) -> Tensor:
    """Each edge's destination, int64 ``[num_edges]``; a GPU is not waited for."""
    rows = torch.arange(block.num_dst, device=block.indptr.device)
    return torch.repeat_interleave(rows, block.indptr.diff(), output_size=block.num_edges)
