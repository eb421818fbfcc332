"""The fastest aggregation of this suite on a GPU (``native/cuda/aggregate/tuned.h``; its gradient
``spread_rows.h``)."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import Kernels, aggregate_by
from gnnbench.kernels.library import load_native


def aggregate_tuned(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None
) -> Tensor:
    """As :func:`gnnbench.kernels.aggregate.aggregate`, on a GPU: eight rows of a destination asked
    for
    at once, offsets and ids read together for several destinations. The gradient is spread evenly
    whatever the sources' degrees.

    Raises ``UsageError`` for a wrong argument, and where ``x`` is not on a GPU.
    """
    if not x.is_cuda:
        raise UsageError("the 'tuned' aggregation runs on a GPU; move the block and x there")
    load_native()
    ops = torch.ops.gnnbench
    return aggregate_by(
        Kernels(ops.aggregate_tuned, ops.aggregate_transposed), block, x, mode, edge_weight
    )
