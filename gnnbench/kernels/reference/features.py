"""Gather of feature rows, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def gather(table: Tensor, ids: Tensor) -> Tensor:
    """As :func:`gnnbench.kernels.features.gather`; ids are trusted."""
    rows = [table[i] for i in ids.tolist()]
    return torch.stack(rows) if rows else table[:0].clone()


def gather_once(table: Tensor, batches: Sequence[Tensor]) -> tuple[Tensor, int]:
    """As :func:`gnnbench.kernels.features.gather_once`: the rows, and how many were read."""
    known = {i: table[i] for ids in batches for i in ids.tolist()}
    rows = [known[i] for ids in batches for i in ids.tolist()]
    return torch.stack(rows) if rows else table[:0].clone(), len(known)
