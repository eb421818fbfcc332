"""Blocks for tests of operators, and error bounds of sums."""

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block


def block_of(rows: list[list[int]], num_src: int) -> Block:
    counts = torch.tensor([0] + [len(r) for r in rows]).cumsum(0).int()
    edges = torch.tensor([u for r in rows for u in r], dtype=torch.int32)
    return Block(counts, edges, torch.arange(num_src), len(rows))


def random_block(num_dst: int, num_src: int, edges: int, seed: int) -> Block:
    generator = torch.Generator().manual_seed(seed)
    cuts = torch.randint(0, edges + 1, (max(num_dst - 1, 0),), generator=generator).sort().values
    ends = torch.tensor([edges]) if num_dst else torch.empty(0, dtype=torch.int64)
    indptr = torch.cat([torch.tensor([0]), cuts, ends]).int()
    kept = edges if num_dst else 0
    indices = torch.randint(0, max(num_src, 1), (kept,), generator=generator).int()
    return Block(indptr, indices, torch.arange(num_src), num_dst)


def assert_sums(got: Tensor, exact: Tensor, sizes: Tensor, terms: int) -> None:
    """Each sum is within the bound of its length.

    A sum of n products in a precision of unit u is off by at most n u / (1 - n u) times the sum of
    the terms' sizes (Higham, Accuracy and Stability, 3.1), whatever the order; ``terms`` counts
    every rounding on the way, and ``sizes`` float64 are those sums. A narrower result is rounded
    once more.
    """
    unit = torch.finfo(torch.float64 if got.dtype == torch.float64 else torch.float32).eps / 2
    assert terms * unit < 0.1
    bound = terms * unit / (1 - terms * unit) * sizes
    if got.dtype in (torch.float16, torch.bfloat16):
        info = torch.finfo(got.dtype)
        bound = bound + info.eps / 2 * (exact.abs() + bound) + info.smallest_normal * info.eps
    excess = (got.double() - exact).abs() - bound
    assert not excess.numel() or excess.max() <= 0, excess.max()
