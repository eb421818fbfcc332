"""Overlaps of batches, their match degrees, and FastGL's greedy order.

Zhu et al., FastGL, ASPLOS '24, section 4.1 and Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gnnbench.kernels.id_set import union_ids

# Entries of a matrix of zeros and ones that are multiplied at once: below 2^24 every sum is a
# float32, whatever the precision of the product.
ONES_AT_ONCE = 1 << 24
RANGE_BYTES = 1 << 20  # of masks: half of a core's second-level cache
WIDTH = 2048  # entries of a row of ones: the highest integer below which float16 has them all
TILE_BYTES = 1 << 31  # of rows of ones at a time
SPARSE = 64  # ids are renumbered where fewer than one in SPARSE ids of the graph occurs


def overlaps(batches: Sequence[Tensor]) -> Tensor:
    """Number of nodes that batches share, by pair: int64 ``[n, n]`` on the host.

    ``batches``: int32 or int64 ids, distinct within a batch, all on one device. The diagonal has
    the batches' sizes. Exact; memory grows with the number of ids, not with the graph.
    """
    shared_nodes = torch.diag(torch.tensor([b.numel() for b in batches], dtype=torch.int64))
    filled = [b for b in batches if b.numel()]
    if len(filled) < 2:
        return shared_nodes
    shared = by_products(filled) if filled[0].is_cuda else by_masks(filled)
    at = shared_nodes.diagonal().nonzero()[:, 0]
    sizes = torch.diag(shared_nodes.diagonal()[at])
    shared_nodes[at[:, None], at] = shared.cpu().fill_diagonal_(0) + sizes
    return shared_nodes


def by_masks(batches: Sequence[Tensor]) -> Tensor:
    """Shared nodes of nonempty batches on the host; the diagonal counts shared nodes only.

    Works on one range of ids at a time, whose bit masks fit in a core's cache.
    """
    sorted_ids = [b.sort().values.numpy() for b in numbered(batches)[0]]
    n = len(sorted_ids)
    width = max(RANGE_BYTES // (8 * -(-n // 64)), 1)
    starts = np.arange(0, max(int(b[-1]) for b in sorted_ids) + 1 + width, width)
    bounds = [np.searchsorted(b, starts) for b in sorted_ids]
    masks = np.zeros((-(-n // 64), width), np.uint64)
    shared = np.zeros((n, n), np.int64)
    for nth, start in enumerate(starts[:-1].tolist()):
        masks[:] = 0
        for i, (ids, at) in enumerate(zip(sorted_ids, bounds, strict=True)):
            masks[i // 64, ids[at[nth] : at[nth + 1]] - start] |= np.uint64(1 << (i % 64))
        # Most nodes of large graphs are in a single batch, hence in no overlap.
        several = ((masks & (masks - np.uint64(1))) != 0).any(0) | ((masks != 0).sum(0) > 1)
        rows = np.ascontiguousarray(masks[:, several].T)
        for first in range(0, len(rows), max(1, ONES_AT_ONCE // n)):
            some = rows[first : first + max(1, ONES_AT_ONCE // n)].view(np.uint8)
            ones = np.unpackbits(some, axis=1, count=n, bitorder="little").astype(np.float32)
            shared += (ones.T @ ones).astype(np.int64)
    return torch.from_numpy(shared)


def by_products(batches: Sequence[Tensor]) -> Tensor:
    """The same for a GPU, by products of float16 matrices of ones; exact.

    Nodes of a single batch are left out and the others are renumbered (``union_ids``). A tile of
    ``TILE_BYTES`` has a one for each pair of batch and node. It is multiplied in chunks of
    ``WIDTH``: no sum of a chunk exceeds 2048, up to which float16 represents every integer, and no
    sum of a tile exceeds 2^24, up to which float32 does. Nothing is sorted, and a node of all
    batches costs no more than another.

    1,000 batches of 300 k out of 100 M ids: 80 M nodes are shared, 1.6e14 operations (0.3 s of the
    H200's tensor cores at float16; counting pairs by atomics is 3e11 of them where all batches
    have 300 k hubs in common), 160 GB of ones written and read (0.1 s), and for each of 75 tiles
    300 M reads of a set of 25 MB in the second-level cache (4 ms): near 1 s. Larger tiles look
    places up less often.
    """
    batches, num_nodes = numbered(batches)
    several = union_ids(batches, num_nodes, shared=True)
    n, device = len(batches), batches[0].device
    shared = torch.zeros((n, n), dtype=torch.int64, device=device)
    most = min(TILE_BYTES // (2 * n * WIDTH), ONES_AT_ONCE // WIDTH)
    pieces = max(1, min(most, -(-several.ids.numel() // WIDTH)))
    ones = torch.empty((pieces, n, WIDTH), dtype=torch.float16, device=device)
    for first in range(0, several.ids.numel(), pieces * WIDTH):
        several.ones(batches, first, ones.zero_())
        shared += (ones @ ones.mT).sum(0, dtype=torch.float32).long()
    return shared


def numbered(batches: Sequence[Tensor]) -> tuple[Sequence[Tensor], int]:
    """Nonempty batches and an upper bound of their ids; renumbered where few ids occur."""
    count = sum(b.numel() for b in batches)
    bound = int(torch.stack([b.max() for b in batches]).max()) + 1
    if count * SPARSE >= bound:
        return batches, bound
    ids, places = torch.cat(list(batches)).unique(return_inverse=True)
    return places.split([b.numel() for b in batches]), ids.numel()


def match_degrees(overlaps: Tensor) -> Tensor:
    """``|i and j| / min(|i|, |j|)`` of every pair of batches: float64 ``[n, n]``.

    ``overlaps`` int64 ``[n, n]``, the sizes on its diagonal. A batch without nodes matches none.
    """
    sizes = overlaps.diagonal()
    smaller = torch.minimum(sizes[:, None], sizes[None, :])
    return overlaps.double() / smaller.clamp(min=1).double()


def greedy_order(degrees: Tensor, start: int = 0) -> list[int]:
    """Order batches so that each is the best match of its predecessor among those left.

    ``degrees`` float64 ``[n, n]``; the first batch is ``start``, and ties go to the earlier batch.
    FastGL's Algorithm 1, except that taken batches are masked: set to zero, as printed, one of them
    could be taken again where no remaining batch overlaps. Returns a permutation of 0 to n - 1.
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
