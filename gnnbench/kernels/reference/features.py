"""Gather of feature rows, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.kernels.lookup import IdLookup


def gather(table: Tensor, ids: Tensor) -> Tensor:
    """As :func:`gnnbench.kernels.features.gather`; ids are trusted."""
    rows = [table[i] for i in ids.tolist()]
    return torch.stack(rows) if rows else table[:0].clone()


def gather_once(table: Tensor, batches: Sequence[Tensor]) -> tuple[Tensor, int]:
    """As :func:`gnnbench.kernels.features.gather_once`: the rows, and how many were read."""
    known = {i: table[i] for ids in batches for i in ids.tolist()}
    rows = [known[i] for ids in batches for i in ids.tolist()]
    return torch.stack(rows) if rows else table[:0].clone(), len(known)


def gather_over_cache(
    table: Tensor, last: tuple[Tensor, IdLookup], cache: tuple[Tensor, IdLookup], ids: Tensor
) -> tuple[Tensor, list[int]]:
    """As :func:`gnnbench.kernels.features.gather_over_cache`: the rows, and how many were in the
    last batch and in the cache. The next generation of ``last`` has the positions of ``ids``."""
    out, hits = table.new_empty((ids.numel(), *table.shape[1:])), [0, 0]
    slots = [known.find(ids).tolist() for _, known in (last, cache)]
    for place, node in enumerate(ids.tolist()):
        level = next((n for n in range(2) if slots[n][place] >= 0), None)
        if level is None:
            out[place] = table[node]
        else:
            out[place] = (last, cache)[level][0][slots[level][place]]
            hits[level] += 1
    known = last[1]
    known.slots[ids.long()] = torch.arange(ids.numel(), dtype=torch.int32)
    known.generations[ids.long()] = known.generation + 1
    return out, hits
