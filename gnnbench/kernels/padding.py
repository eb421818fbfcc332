"""Copy a batch's blocks into buffers of one shape for all batches."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gnnbench.kernels.library import native_operators


def pad_blocks(
    indptrs: Sequence[Tensor],
    indices: Sequence[Tensor],
    weights: Sequence[Tensor],
    labels: Tensor,
    room_indptrs: Sequence[Tensor],
    room_indices: Sequence[Tensor],
    room_weights: Sequence[Tensor],
    room_labels: Tensor,
) -> None:
    """Copy each layer's offsets int32 ``[rows + 1]``, ids int32 ``[edges]`` and optional weights
    float32 ``[edges]``, and labels int64 ``[seeds]``, into longer tensors.

    The padding edges are distributed evenly and in order over the padding rows; their ids and
    weights are unchanged. Padding labels become -1. One kernel on one device, without a wait.
    Raises ``UsageError`` for tensors that do not fit, and for padding edges without a padding row.
    """
    with native_operators() as ops:
        ops.pad_blocks(
            list(indptrs), list(indices), list(weights), labels, list(room_indptrs),
            list(room_indices), list(room_weights), room_labels,
        )  # fmt: skip
