"""Sets of ids, as Python sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor


def union_ids(batches: Sequence[Tensor], num_nodes: int, shared: bool = False) -> list[list[int]]:
    """As :func:`gnnbench.kernels.id_set.union_ids`: the ids, then bits and number before of each
    word,
    flat; ids are trusted."""
    known = Counter(i for batch in batches for i in batch.tolist())
    ids = sorted(i for i, times in known.items() if times >= 1 + shared)
    words = []
    for first in range(0, num_nodes, 32):
        words.append(sum(1 << (i - first) for i in ids if first <= i < first + 32))
        words.append(sum(i < first for i in ids))
    return [ids, words]


def ones(ids: Sequence[int], batches: Sequence[Tensor], first: int, shape: Sequence[int]) -> Tensor:
    """As :meth:`gnnbench.kernels.id_set.IdSet.ones` into zeros: float16 of that shape."""
    matrix = torch.zeros(*shape, dtype=torch.float16)
    pieces, _, width = shape
    for nth, batch in enumerate(batches):
        for place, i in enumerate(ids):
            at = place - first
            if 0 <= at < pieces * width and i in batch.tolist():
                matrix[at // width, nth, at % width] = 1
    return matrix
