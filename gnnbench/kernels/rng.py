"""Keys of the counter-based generator, and permutations made from it.

The generator is Philox4x32-10; ``native/include/gnnbench/rng.h`` lays out its counter. A key is a
hash of (run seed, epoch, purpose), so that two purposes never share a stream.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Set for all workers of a run where one of them has a torch that cannot load the native library.
IN_NUMPY = "GNNBENCH_ORDER_IN_NUMPY"
WORTH_SELECTING = 0.5  # of all elements: sorting more than these costs as much as sorting all
_PIECE = 1 << 20  # elements whose keys stay in a cache
_MASK = (1 << 64) - 1


def _mix(x: int) -> int:
    """Finalizer of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a bijection of 64 bits."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def key(seed: int, epoch: int, purpose: str) -> int:
    """Philox key of a purpose (``"sample"``, ``"order"`` ...) in an epoch of a run, in [0, 2^63).

    The same everywhere: Python's own ``hash`` of strings is salted and takes no part.
    """
    h = _mix(seed & _MASK)
    h = _mix(h ^ (epoch & _MASK))
    text = purpose.encode()
    h = _mix(h ^ len(text))
    for at in range(0, len(text), 8):
        h = _mix(h ^ int.from_bytes(text[at : at + 8], "little"))
    return h >> 1


def permutation(
    n: int, key: int, device: torch.device | str = "cpu", first: int | None = None
) -> Tensor:
    """A permutation of ``range(n)``, int64 ``[n]``, the same bits on every machine and device.

    Element i gets the 64-bit sort key (words 0 and 1 of the block with counter (i low, i high, 0,
    0xFFFFFFFF)); equal sort keys keep their order. ``first``: no more than so many elements of it,
    on a CPU without sorting the others. Drawn by the native library, or with
    ``IN_NUMPY`` set by the reference in numpy: the same bits, later.
    """
    import torch

    some = n if first is None else min(first, n)
    if os.environ.get(IN_NUMPY):
        from gnnbench.kernels.reference import rng as reference

        return torch.from_numpy(reference.permutation(n, key)[:some]).to(device)
    if torch.device(device).type == "cpu" and some < n * WORTH_SELECTING:
        # Keys are uniform: that many are below the limit, within six standard deviations.
        limit = int((some + 6 * math.isqrt(some) + 36) / n * 2**63)
        parts = []
        for begin in range(0, n, _PIECE):
            keys = _sort_keys(begin, min(begin + _PIECE, n), key, device)
            near = (keys < limit).nonzero().flatten()
            parts.append((near + begin, keys[near]))
        near, keys = (torch.cat(p) for p in zip(*parts, strict=True))
        if near.numel() >= some:
            return near[torch.sort(keys, stable=True).indices[:some]]
    return torch.sort(_sort_keys(0, n, key, device), stable=True).indices[:some]


def _sort_keys(begin: int, end: int, key: int, device: torch.device | str) -> Tensor:
    """Keys of elements ``begin`` to ``end``: 63 bits, for another would be a sign."""
    import torch

    from gnnbench.kernels.sampler import philox

    i = torch.arange(begin, end, dtype=torch.int64, device=device)
    zero = torch.zeros_like(i)
    counters = torch.stack([i & 0xFFFFFFFF, i >> 32, zero, zero + 0xFFFFFFFF], dim=1)
    words = philox(key, counters)
    return (words[:, 0] << 31) | (words[:, 1] >> 1)
