"""What batches have in common: overlaps of their nodes, match degrees, and the order that they
suggest (Zhu et al., FastGL, ASPLOS '24, section 4.1 and Algorithm 1).

A kernel may take the place of ``by_sorting``: bits by node and batch, set by atomics.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

# Entries of a matrix of zeros and ones that are multiplied at once: below 2^24 every sum is a
# float32, whatever the precision of the product.
ONES_AT_ONCE = 1 << 24
RANGE_BYTES = 1 << 20  # of masks: half of a core's second-level cache
SPARSE = 64  # of as many ids of the graph or fewer one is given, else ids are numbered anew


def overlaps(batches: Sequence[Tensor]) -> Tensor:
    """Number of nodes that batches share, by pair: int64 ``[n, n]`` on the host.

    ``batches``: int32 or int64 ids, distinct within a batch, all on one device. The diagonal has
    the batches' sizes. Exact; memory goes with the ids that are given, not with the graph.
    """
    found = torch.diag(torch.tensor([b.numel() for b in batches], dtype=torch.int64))
    filled = [b for b in batches if b.numel()]
    if len(filled) < 2:
        return found
    shared = by_sorting(filled) if filled[0].is_cuda else by_masks(filled)
    at = found.diagonal().nonzero()[:, 0]
    found[at[:, None], at] = shared.cpu().fill_diagonal_(0) + torch.diag(found.diagonal()[at])
    return found


def by_masks(batches: Sequence[Tensor]) -> Tensor:
    """Shared nodes of filled batches on the host; the diagonal lacks nodes that are in one only.

    A range of ids after the other, so that a bit for each of its ids and batches stays in a core's
    cache.
    """
    given = [b.numpy() for b in batches]
    n, count = len(given), sum(b.size for b in given)
    if count * SPARSE < max(int(b.max()) for b in given):
        ranks = np.unique(np.concatenate(given), return_inverse=True)[1]
        given = np.split(ranks, np.cumsum([b.size for b in given])[:-1])
    given = [np.sort(b) for b in given]
    width = max(RANGE_BYTES // (8 * -(-n // 64)), 1)
    starts = np.arange(0, max(int(b[-1]) for b in given) + 1 + width, width)
    bounds = [np.searchsorted(b, starts) for b in given]
    masks = np.zeros((-(-n // 64), width), np.uint64)
    shared = np.zeros((n, n), np.int64)
    for nth, start in enumerate(starts[:-1].tolist()):
        masks[:] = 0
        for i, (ids, at) in enumerate(zip(given, bounds, strict=True)):
            masks[i // 64, ids[at[nth] : at[nth + 1]] - start] |= np.uint64(1 << (i % 64))
        # Most nodes of large graphs are met by one batch only: they are in no overlap.
        several = ((masks & (masks - np.uint64(1))) != 0).any(0) | ((masks != 0).sum(0) > 1)
        met = np.ascontiguousarray(masks[:, several].T)
        for first in range(0, len(met), max(1, ONES_AT_ONCE // n)):
            some = met[first : first + max(1, ONES_AT_ONCE // n)].view(np.uint8)
            ones = np.unpackbits(some, axis=1, count=n, bitorder="little").astype(np.float32)
            shared += (ones.T @ ones).astype(np.int64)
    return torch.from_numpy(shared)


def by_sorting(batches: Sequence[Tensor]) -> Tensor:
    """The same by one sort of all ids, in operators that every device has."""
    n = len(batches)
    bits = (n - 1).bit_length()
    keys = torch.cat([(b.long() << bits) | i for i, b in enumerate(batches)]).sort().values
    again = (keys[1:] >> bits) == (keys[:-1] >> bits)
    none = again.new_zeros(1)
    keys = keys[torch.cat([none, again]) | torch.cat([again, none])]
    shared = torch.zeros((n, n), dtype=torch.int64, device=keys.device)
    if not keys.numel():
        return shared
    ids, batch = keys >> bits, keys & ((1 << bits) - 1)
    row = torch.cat([none.long(), (ids[1:] != ids[:-1]).long()]).cumsum(0)
    height = max(1, ONES_AT_ONCE // n)
    starts = torch.arange(0, int(row[-1]) + 1 + height, height, device=row.device)
    bounds = torch.searchsorted(row, starts).tolist()
    for nth, (begin, end) in enumerate(pairwise(bounds)):
        if begin == end:
            break
        ones = torch.zeros((height, n), dtype=torch.float32, device=row.device)
        ones[row[begin:end] - nth * height, batch[begin:end]] = 1.0
        shared += (ones.T @ ones).long()
    return shared


def match_degrees(overlaps: Tensor) -> Tensor:
    """``|i and j| / min(|i|, |j|)`` of every pair of batches: float64 ``[n, n]``.

    ``overlaps`` int64 ``[n, n]``, the sizes on its diagonal. A batch without nodes matches none.
    """
    sizes = overlaps.diagonal()
    smaller = torch.minimum(sizes[:, None], sizes[None, :])
    return overlaps.double() / smaller.clamp(min=1).double()


def greedy_order(degrees: Tensor, start: int = 0) -> list[int]:
    """Batches one after the other, each the best match of the one before among those left.

    ``degrees`` float64 ``[n, n]``; the first is ``start``, of equal degrees the earlier batch is
    taken. FastGL's Algorithm 1, but those taken are masked: set to zero, as printed, one of them
    could be taken again where nothing that is left overlaps. Always a permutation of 0 to n - 1.
    """
    left = degrees.numpy().copy()
    order: list[int] = []
    for _ in range(left.shape[0]):
        order.append(start)
        left[:, start] = -1.0
        start = int(left[start].argmax())
    return order


def pairs(degrees: Tensor) -> Tensor:
    """The degrees of every pair of two batches, once each: float64 ``[n (n - 1) / 2]``."""
    return degrees[torch.ones_like(degrees, dtype=torch.bool).triu(1)]
