"""FastGL's Memory-Aware aggregation (section 4.2), on a GPU: as published, and at its best.

As published, a thread block computes ``y_dims`` columns of ``x_nodes`` destinations, with partial
sums, source ids and edge weights in shared memory (``native/cuda/aggregate/memory_aware.h``). The
gradient is Eq. 5, the same on the transpose, or the scatter by atomics of the authors' code. At its
best, a warp sums a destination (``native/cuda/aggregate/memory_aware_warp.h``).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import Kernels, aggregate_by
from gnnbench.kernels.attention import HeadKernels, attend
from gnnbench.kernels.library import load_native

X_NODES, Y_DIMS = 8, 32  # the paper's
WARPS, WARP_COLUMNS = 8, 128


def _require_gpu(x: Tensor, name: str) -> None:
    if not x.is_cuda:
        raise UsageError(f"the '{name}' aggregation runs on a GPU; move the block and x there")


def _kernels_as_published(x_nodes: int, y_dims: int, scatter: bool) -> Kernels:
    load_native()
    ops = torch.ops.gnnbench

    def forward(*arguments: object) -> Tensor:
        return ops.aggregate_memory_aware(*arguments, x_nodes, y_dims)

    def backward(*arguments: object) -> Tensor:
        return ops.aggregate_memory_aware_transposed(*arguments, x_nodes, y_dims)

    def scattered(
        indptr: Tensor, indices: Tensor, grad: Tensor, num_src: int, mode: str,
        weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        sums: Tensor = ops.aggregate_memory_aware_scattered(
            indptr, indices, grad, num_src, mode, weights, x_nodes, y_dims
        )
        return sums.to(grad.dtype)

    return Kernels(forward, backward, scattered if scatter else None)


def _kernels_by_warps(warps: int, columns: int) -> Kernels:
    load_native()
    ops = torch.ops.gnnbench

    def forward(*arguments: object) -> Tensor:
        return ops.aggregate_memory_aware_warp(*arguments, warps, columns)

    def backward(*arguments: object) -> Tensor:
        return ops.aggregate_memory_aware_warp_transposed(*arguments, warps, columns)

    return Kernels(forward, backward)


def _of_heads(kernels: Kernels) -> HeadKernels:
    """The same kernels for sums of heads."""

    def forward(block: Block, x: Tensor, weights: Tensor) -> Tensor:
        return kernels.forward(block.indptr, block.indices, x, block.num_dst, "sum", weights)

    def backward(block: Block, grad: Tensor, weights: Tensor) -> Tensor:
        return kernels.gradient(block, grad, "sum", weights)

    return HeadKernels(forward, backward)


def aggregate_memory_aware(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None, *,
    x_nodes: int = X_NODES, y_dims: int = Y_DIMS, scatter: bool = False,
) -> Tensor:  # fmt: skip
    """As :func:`gnnbench.kernels.aggregate.aggregate`, ``x_nodes * y_dims`` at most 1024 threads.

    ``y_dims`` is a power of two. ``scatter``: the gradient is added to the sources' rows by
    atomics, in nondeterministic order; it needs no transpose. Raises ``UsageError`` for a wrong
    argument, and where ``x`` is not on a GPU.
    """
    _require_gpu(x, "memory-aware")
    return aggregate_by(
        _kernels_as_published(x_nodes, y_dims, scatter), block, x, mode, edge_weight
    )


def attend_memory_aware(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float, *,
    x_nodes: int = X_NODES, y_dims: int = Y_DIMS, scatter: bool = False,
) -> Tensor:  # fmt: skip
    """As :func:`gnnbench.kernels.attention.attend`; sums and their gradient are Memory-Aware.

    The paper has no kernels for scores, softmax and the gradient of the attention weights, so
    these are the native operators. Raises ``UsageError`` as :func:`aggregate_memory_aware` does.
    """
    _require_gpu(z, "memory-aware")
    kernels = _of_heads(_kernels_as_published(x_nodes, y_dims, scatter))
    return attend(block, z, of_source, of_destination, slope, kernels)


def aggregate_memory_aware_warp(
    block: Block, x: Tensor, mode: str, edge_weight: Tensor | None = None, *,
    warps: int = WARPS, columns: int = WARP_COLUMNS,
) -> Tensor:  # fmt: skip
    """As :func:`gnnbench.kernels.aggregate.aggregate`: blocks of ``warps`` (1 to 8), each of which
    sums at most ``columns`` (64 or 128) of a row at once.

    Results do not depend on either. Raises ``UsageError`` for a wrong argument, and where ``x`` is
    not on a GPU.
    """
    _require_gpu(x, "memory-aware-warp")
    return aggregate_by(_kernels_by_warps(warps, columns), block, x, mode, edge_weight)


def attend_memory_aware_warp(
    block: Block, z: Tensor, of_source: Tensor, of_destination: Tensor, slope: float, *,
    warps: int = WARPS, columns: int = WARP_COLUMNS,
) -> Tensor:  # fmt: skip
    """As :func:`attend_memory_aware`, with the kernels of :func:`aggregate_memory_aware_warp`."""
    _require_gpu(z, "memory-aware-warp")
    kernels = _of_heads(_kernels_by_warps(warps, columns))
    return attend(block, z, of_source, of_destination, slope, kernels)
