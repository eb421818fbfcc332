"""A block in PyG's form; a separate module, so that its importers need not import PyG."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class PygBlock:
    """A bipartite layer in PyG's terms.

    ``edge_index`` int64 ``[2, num_edges]``: row 0 the sources, row 1 the destinations, local ids
    with the destinations first; ``degree`` float32 ``[num_dst]`` counts sampled edges. ``weights``
    float32 ``[num_edges]`` or None: how often random walks visited the neighbour.
    """

    edge_index: Tensor
    num_src: int
    num_dst: int
    weights: Tensor | None = None

    @property
    def degree(self) -> Tensor:
        """Sampled edges of each destination."""
        dst = self.edge_index[1]
        if not dst.is_cuda:
            return torch.bincount(dst, minlength=self.num_dst).to(torch.float32)
        ones = torch.ones_like(dst, dtype=torch.float32)
        return ones.new_zeros(self.num_dst).scatter_add_(0, dst, ones)  # bincount would wait
