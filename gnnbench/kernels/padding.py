"""A batch's blocks in memory that has one shape for all batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.kernels.library import load_native, native_errors


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
    """Put offsets int32 ``[rows + 1]``, ids int32 ``[edges]`` and weights float32 ``[edges]`` (or
    none at all) of each layer, and labels int64 ``[seeds]``, into longer tensors.

    The edges behind the batch's are shared out, evenly and in order, among the rows behind the
    batch's; what they have of ids and weights stays. Labels behind the batch's become -1. All on
    one device, where it is one kernel. Nothing waits. Raises ``UsageError`` for what does not fit,
    and where edges are left without a row behind the batch's.
    """
    load_native()
    with native_errors():
        torch.ops.gnnbench.pad_blocks(
            list(indptrs), list(indices), list(weights), labels, list(room_indptrs),
            list(room_indices), list(room_weights), room_labels,
        )  # fmt: skip
