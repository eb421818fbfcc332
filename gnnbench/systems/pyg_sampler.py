"""Our sampler behind PyG's ``BaseSampler``."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from gnnbench.errors import UnsupportedError
from gnnbench.stages.sampler import Sampler


class PygSampler(BaseSampler):
    """Samples with the ``new`` frontier, whose input block holds every edge of the batch once."""

    def __init__(self, sampler: Sampler) -> None:
        self._inner = sampler
        self._epoch = self._batch = 0

    def place(self, epoch: int, batch: int) -> None:
        """Which batch of which epoch the next call draws."""
        self._epoch, self._batch = epoch, batch

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's form of the batch: local rows and columns, global nodes, edge ids."""
        batch = self._inner.sample(index.node, self._epoch, self._batch)
        whole = batch.blocks[0]
        col = torch.repeat_interleave(torch.arange(whole.num_dst), whole.indptr.diff().long())
        return SamplerOutput(
            node=whole.src_nodes.long(),
            row=whole.indices.long(),
            col=col,
            edge=whole.positions,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: Any, **kwargs: Any) -> SamplerOutput:
        """Link-level sampling is no part of the suite."""
        raise UnsupportedError("this sampler samples from nodes; use NodeLoader")

    @property
    def edge_permutation(self) -> None:
        """Positions are edge ids already."""
        return None
