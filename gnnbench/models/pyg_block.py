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
        return _counted(self.edge_index[1], self.num_dst)

    @property
    def symmetric(self) -> Tensor:
        """Weight 1 / sqrt(d_u d_v) of each edge, float32 ``[num_edges]``, as ``gcn_norm`` computes
        it, by the block's degrees of sources and destinations."""
        src, dst = self.edge_index
        begun, ended = _counted(src, self.num_src).rsqrt(), self.degree.rsqrt()
        return begun[src] * ended[dst]


def _counted(ids: Tensor, bound: int) -> Tensor:
    """How often each id below ``bound`` occurs, float32."""
    if not ids.is_cuda:
        return torch.bincount(ids, minlength=bound).to(torch.float32)
    ones = torch.ones_like(ids, dtype=torch.float32)
    return ones.new_zeros(bound).scatter_add_(0, ids, ones)  # bincount would wait
