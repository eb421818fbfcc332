"""Aggregation by gather and scatter, as in PyG: writes one row per edge, then sums the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import sum_dtype
from gnnbench.kernels.aggregate_values import mode_values
from gnnbench.kernels.transpose import edge_dst


def aggregate_scatter(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None
) -> Tensor:
    """A :class:`gnnbench.models.native.Aggregate` by ``index_select`` and ``scatter_add``.

    PyG's message passing (Fey and Lenssen, 2019): memory and traffic of ``num_edges`` rows. ``x``
    ``[num_src, dim]`` of any floating dtype; sums are taken in that dtype, those of narrow ones
    round at every step, as PyG's do. On a GPU scatters are atomic, and results may differ between
    runs. Raises ``UsageError`` as :func:`gnnbench.kernels.aggregate_values.mode_values` does.
    """
    dst = edge_dst(block)
    values, own = mode_values(block, dst, mode, edge_weight, sum_dtype(x))
    messages = x.index_select(0, block.indices)
    if mode != "sum" or edge_weight is not None:
        messages = messages * values.to(x.dtype).unsqueeze(1)
    out = x.new_zeros(block.num_dst, x.shape[1])
    out = out.scatter_add(0, dst.unsqueeze(1).expand_as(messages), messages)
    if own is not None:
        out = out + own.to(x.dtype).unsqueeze(1) * x[: block.num_dst]
    return out


def attend_scatter(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float
) -> Tensor:
    """A :class:`gnnbench.models.native.Attend` by gather and scatter: ``num_edges`` rows of
    ``z`` are written and weighted, then added up, as PyG's ``GATConv`` does."""
    dst, src = edge_dst(block), block.indices
    scores = of_source.index_select(0, src) + of_destination.index_select(0, dst)
    scores = torch.nn.functional.leaky_relu(scores, slope)
    none, at = scores.new_zeros(block.num_dst, scores.shape[1]), dst.unsqueeze(1).expand_as(scores)
    largest = none.scatter_reduce(0, at, scores.detach(), "amax", include_self=False)
    shares = (scores - largest.index_select(0, dst)).exp()
    sums = shares.new_zeros(none.shape).scatter_add(0, at, shares)
    shares = shares / sums.index_select(0, dst)
    messages = z.index_select(0, src) * shares.unsqueeze(2)
    out = messages.new_zeros(block.num_dst, *z.shape[1:])
    return out.scatter_add(0, dst.view(-1, 1, 1).expand_as(messages), messages)
