"""Random blocks, and exact aggregations over them as dense float64 matrices on the block's
device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass
class DrawnBlock:
    """indptr, indices int32."""

    indptr: Tensor
    indices: Tensor
    num_src: int

    @property
    def num_dst(self) -> int:
        return self.indptr.numel() - 1

    @property
    def rows(self) -> Tensor:
        """The destination of each edge, int64."""
        rows = torch.arange(self.num_dst, device=self.indptr.device)
        return torch.repeat_interleave(rows, self.indptr.diff().long())

    def matrix(self, mode: str, weights: Tensor | None = None) -> Tensor:
        """The aggregation, float64 [num_dst, num_src]: the reference's matrix, all rows at once."""
        matrix = torch.zeros(
            self.num_dst, self.num_src, dtype=torch.float64, device=self.indptr.device
        )
        values = torch.ones_like(self.indices) if weights is None else weights
        matrix.index_put_((self.rows, self.indices.long()), values.double(), accumulate=True)
        if mode == "sum":
            return matrix
        degree = matrix.sum(1)
        if mode == "gcn":
            matrix.diagonal().add_(1)
            degree += 1
        return matrix / torch.where(degree == 0, 1, degree)[:, None]


def drawn_block(
    num_dst: int, num_src: int, top: int, seed: int, hub: int = 0, device: str = "cpu"
) -> DrawnBlock:
    """Rows of 0 to ``top`` edges, one of ``hub``; a fifth of the edges has source 0."""
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, top + 1, num_dst)
    if hub:
        degrees[num_dst // 2] = hub
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    indices = rng.integers(0, num_src, indptr[-1]).astype(np.int32)
    indices[rng.random(len(indices)) < 0.2] = 0
    tensors = [torch.from_numpy(values).to(device) for values in (indptr, indices)]
    return DrawnBlock(*tensors, num_src)


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def assert_within(actual: Tensor, exact: Tensor, magnitude: Tensor, terms: int) -> None:
    """Bound the error of a sum of ``terms`` products: a relative rounding error of eps per
    operation and of the result, plus the smallest normal number of the result's dtype."""
    own = torch.finfo(actual.dtype)
    sums = torch.finfo(sum_dtype(actual.dtype)).eps
    bound = magnitude * (2 * (terms + 4) * sums + own.eps) + own.smallest_normal
    assert bool(((actual.double() - exact).abs() <= bound).all())
