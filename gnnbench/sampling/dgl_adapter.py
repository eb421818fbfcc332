"""Any sampler behind DGL's ``Sampler``."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gnnbench.convert import to_dgl
from gnnbench.errors import UsageError
from gnnbench.foreign.dgl_import import require_dgl
from gnnbench.sampling.place import Place, Samples, check_edge_ids

dgl: Any = require_dgl()
BlockSampler: Any = dgl.dataloading.BlockSampler


class DglSampler(BlockSampler):
    """A sampler for ``dgl.dataloading.DataLoader``, on the sampler's device.

    The topology is the sampler's own; the loader's graph, which must have as many nodes and edges,
    lends its node and edge data to the blocks. DGL does not tell a sampler which batch it draws:
    batches count from ``set_epoch`` on (see there).
    """

    def __init__(self, sampler: Samples, edge_ids: Tensor | None = None, **prefetch: Any) -> None:
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
        nodes, edges = self._inner.num_nodes, self._inner.num_edges
        if (g.num_nodes(), g.num_edges()) != (nodes, edges):
            raise UsageError(
                f"the loader's graph has {g.num_nodes()} nodes and {g.num_edges()} edges where the"
                f" sampler's has {nodes} and {edges}; build the sampler from that graph"
            )
        epoch, number = self._place.next()
        walks = self._inner.pick == "random_walk"
        batch = self._inner.sample(seed_nodes, epoch, number, with_positions=not walks)
        for ours in batch.blocks:
            ours.src_nodes = ours.src_nodes.to(g.idtype)
            if self._edge_ids is not None and ours.positions is not None:
                self._edge_ids = self._edge_ids.to(ours.positions.device)
                ours.positions = self._edge_ids[ours.positions]
        input_nodes, seeds, blocks = to_dgl(batch)
        for block in blocks:
            _lend_frames(g, block)
        return input_nodes, seeds, blocks


def _lend_frames(g: Any, block: Any) -> None:
    """Rows of the graph's node and edge data, read when asked for, as DGL's samplers lend them."""
    weights = block.edata.get("weights")
    nodes = dgl.utils.extract_node_subframes_for_block(
        g, [block.srcdata[dgl.NID]], [block.dstdata[dgl.NID]]
    )
    edges = None
    if dgl.EID in block.edata:
        edges = dgl.utils.extract_edge_subframes(g, [block.edata[dgl.EID]])
    dgl.utils.set_new_frames(block, node_frames=nodes, edge_frames=edges)
    if weights is not None:
        block.edata["weights"] = weights
