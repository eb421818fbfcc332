"""Match degrees and Greedy Reorder over Python sets, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def match_degrees(batches: Sequence[Tensor]) -> Tensor:
    """As :func:`gnnbench.kernels.match.match_degrees` of ``overlaps``, over sets."""
    sets = [set(batch.tolist()) for batch in batches]
    degrees = torch.zeros(len(sets), len(sets), dtype=torch.float64)
    for i, one in enumerate(sets):
        for j, other in enumerate(sets):
            smaller = min(len(one), len(other))
            degrees[i, j] = len(one & other) / smaller if smaller else 0.0
    return degrees


def greedy_order(degrees: Tensor, start: int = 0) -> list[int]:
    """As :func:`gnnbench.kernels.match.greedy_order`, over a list of what is left."""
    n = degrees.shape[0]
    if not n:
        return []
    order, left = [start], [i for i in range(n) if i != start]
    while left:
        last = order[-1]
        best = max(left, key=lambda i: (float(degrees[last, i]), -i))
        order.append(best)
        left.remove(best)
    return order
