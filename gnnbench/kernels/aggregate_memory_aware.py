"""FastGL's Memory-Aware aggregation (section 4.2), on a GPU, as published.

A thread block computes ``y_dims`` columns of ``x_nodes`` destinations. Partial sums and edge
weights are in shared memory (``native/cuda/aggregate/memory_aware.h``). The backward pass is the
same on the transpose.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import Kernels, aggregate_by
from gnnbench.kernels.attention import HeadKernels, attend
from gnnbench.kernels.library import load_native
from gnnbench.kernels.transpose import transposed

X_NODES, Y_DIMS = 8, 32  # the paper's


def _require_gpu(x: Tensor) -> None:
    if not x.is_cuda:
        raise UsageError("the 'memory-aware' aggregation runs on a GPU; move the block and x there")


def aggregate_memory_aware(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None, *,
    x_nodes: int = X_NODES, y_dims: int = Y_DIMS,
) -> Tensor:  # fmt: skip
    """As :func:`gnnbench.kernels.aggregate.aggregate`, ``x_nodes * y_dims`` at most 1024 threads.

    Raises ``UsageError`` for a wrong argument, and where ``x`` is not on a GPU.
    """
    _require_gpu(x)
    load_native()
    ops = torch.ops.gnnbench

    def forward(*arguments: object) -> Tensor:
        out: Tensor = ops.aggregate_memory_aware(*arguments, x_nodes, y_dims)
        return out

    def backward(*arguments: object) -> Tensor:
        out: Tensor = ops.aggregate_memory_aware_transposed(*arguments, x_nodes, y_dims)
        return out

    return aggregate_by(Kernels(forward, backward), block, x, mode, edge_weight)


def attend_memory_aware(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float, *,
    x_nodes: int = X_NODES, y_dims: int = Y_DIMS,
) -> Tensor:  # fmt: skip
    """As :func:`gnnbench.kernels.attention.attend`; sums and their gradient are Memory-Aware.

    The paper has no kernels for scores, softmax and the gradient of the attention weights, so
    these are the native operators. Raises ``UsageError`` as :func:`aggregate_memory_aware` does.
    """
    _require_gpu(z)
    load_native()
    ops = torch.ops.gnnbench

    def forward(block: Block, x: Tensor, weights: Tensor) -> Tensor:
        out: Tensor = ops.aggregate_memory_aware(
            block.indptr, block.indices, x, block.num_dst, "sum", weights, x_nodes, y_dims
        )
        return out

    def backward(block: Block, grad: Tensor, weights: Tensor) -> Tensor:
        out: Tensor = ops.aggregate_memory_aware_transposed(
            block.indptr, *transposed(block), grad, "sum", weights, x_nodes, y_dims
        )
        return out

    kernels = HeadKernels(forward, backward)
    return attend(block, z, of_source, of_destination, slope, kernels)
