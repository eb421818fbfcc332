"""Aggregation by gather and scatter: a row for each edge is written, then added up, as PyG does."""

from __future__ import annotations

from torch import Tensor

from gnnbench.minibatch import Block
from gnnbench.ops.aggregate import sum_dtype
from gnnbench.ops.aggregate_values import mode_values
from gnnbench.ops.transpose import edge_dst


def aggregate_scatter(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None
) -> Tensor:
    """As :class:`gnnbench.models.native.Aggregate` says, by ``index_select`` and ``scatter_add``.

    PyG's message passing (Fey and Lenssen, 2019): memory and traffic of ``num_edges`` rows. ``x``
    ``[num_src, dim]`` of any floating dtype; sums are taken in that dtype, those of narrow ones
    round at every step, as PyG's do. On a GPU scatters are atomic, and results may differ between
    runs. Raises ``UsageError`` as :func:`gnnbench.ops.aggregate_values.mode_values` does.
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
