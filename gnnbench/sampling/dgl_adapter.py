"""Any sampler behind DGL's ``Sampler``."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gnnbench.convert import to_dgl
from gnnbench.errors import UsageError
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.place import Place, check_edge_ids
from gnnbench.systems.dgl_import import require_dgl

dgl: Any = require_dgl()
BlockSampler: Any = dgl.dataloading.BlockSampler


class DglSampler(BlockSampler):
    """A sampler for ``dgl.dataloading.DataLoader``, on the sampler's device.

    The topology is the sampler's own; the loader's graph, which must have as many nodes and edges,
    gives its features where they are prefetched. DGL does not tell a sampler which batch it draws:
    batches count from ``set_epoch`` on (see there).
    """

    def __init__(self, sampler: Sampler, edge_ids: Tensor | None = None, **prefetch: Any) -> None:
        super().__init__(**prefetch)
        self._inner = sampler
        self._edge_ids = check_edge_ids(edge_ids, sampler.num_edges)
        self._place = Place()

    def set_epoch(self, epoch: int, batch: int = 0) -> None:
        """Which batch is drawn next; see :class:`gnnbench.sampling.place.Place`."""
        self._place.set_epoch(epoch, batch)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Tensor, Tensor, list[Any]]:
        """(input nodes, seeds, blocks), as DGL's samplers return them."""
        if exclude_eids is not None:
            raise UsageError("exclude_eids: this sampler leaves no edges out")
        ours = (self._inner.num_nodes, self._inner.num_edges)
        if (g.num_nodes(), g.num_edges()) != ours:
            raise UsageError(
                f"the loader's graph has {g.num_nodes()} nodes and {g.num_edges()} edges where the"
                f" sampler's has {ours[0]} and {ours[1]}; build the sampler from that graph"
            )
        epoch, number = self._place.next()
        walks = self._inner.pick == "random_walk"
        batch = self._inner.sample(seed_nodes, epoch, number, with_positions=not walks)
        input_nodes, seeds, blocks = to_dgl(batch)
        if self._edge_ids is not None:
            for block in blocks:
                if dgl.EID in block.edata:
                    at = block.edata[dgl.EID]
                    block.edata[dgl.EID] = self._edge_ids.to(at.device)[at.long()].to(at.dtype)
        return input_nodes, seeds, blocks
