"""A batch of PyG's loaders."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, Block, Hop, Sizes, host_ids
from gnnbench.models.pyg_block import PygBlock

if TYPE_CHECKING:
    from torch_geometric.loader import NodeLoader
    from torch_geometric.sampler import SamplerOutput

HOST = torch.device("cpu")


class PygBatch(Batch):
    """A ``SamplerOutput`` (``out``, on the host), and the loader that fetches its features.

    ``node``, ``row`` and ``col`` are its tensors on the compute ``device``. ``shared``: they are in
    shared memory, so only a few batches may exist at a time.
    """

    def __init__(
        self,
        number: int,
        out: SamplerOutput,
        num_hops: int,
        loader: NodeLoader | None,
        device: torch.device = HOST,
        shared: bool = False,
    ) -> None:
        self.number, self.out, self._num_hops, self.loader = number, out, num_hops, loader
        self._shared = shared and device.type == "cpu"
        self.node, self.row, self.col = out.node, out.row, out.col
        if device.type != "cpu":
            self.node, self.row, self.col = (
                t.pin_memory().to(device, non_blocking=True) for t in (out.node, out.row, out.col)
            )

    @property
    def seeds(self) -> Tensor:  # type: ignore[override]
        """Seeds of the batch."""
        return self.node[: self.out.metadata[0].numel()]

    @property
    def input_nodes(self) -> Tensor:
        """All sampled nodes, seeds first."""
        return self.node

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        """Nodes and edges known after each hop, from the seeds on (hop 0).

        pyg-lib reports them. torch-sparse does not, but it numbers and expands nodes in order of
        first occurrence, so a hop's edges end in the nodes of the previous hop.
        """
        out = self.out
        if out.num_sampled_nodes is not None and out.num_sampled_edges is not None:
            known = accumulate(out.num_sampled_nodes), accumulate([0, *out.num_sampled_edges])
            return list(zip(*known, strict=True))
        nodes, edges = int(out.metadata[0].numel()), 0
        bounds = [(nodes, 0)]
        for _ in range(self._num_hops):
            edges = int(torch.searchsorted(out.col, nodes))
            if edges:
                nodes = max(nodes, int(out.row[:edges].max()) + 1)
            bounds.append((nodes, edges))
        return bounds

    @cached_property
    def pyg_blocks(self) -> list[PygBlock]:
        """One block per layer, as from PyG's ``trim_to_layer``: the hops that the layer needs."""
        edge_index = torch.stack([self.row, self.col])
        return [
            PygBlock(edge_index[:, :edges], num_src=nodes, num_dst=num_dst)
            for (num_dst, _), (nodes, edges) in reversed(list(pairwise(self._bounds)))
        ]

    @cached_property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The layers as ``Block``; PyG's edges are ordered by destination."""
        blocks = []
        for (num_dst, _), (nodes, edges) in reversed(list(pairwise(self._bounds))):
            counts = torch.bincount(self.col[:edges], minlength=num_dst)
            offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
            blocks.append(Block(offsets, self.row[:edges].int(), self.node[:nodes], num_dst))
        return blocks

    def sizes(self) -> Sizes:
        """Sizes by hop; a hop's destinations are the nodes first seen at the previous hop."""
        nodes = self.node.clone() if self._shared else self.node
        layers = [
            (nodes, num_dst, edges) for (num_dst, _), (_, edges) in pairwise(self._bounds)
        ]  # fmt: skip
        seeds = nodes[: self.out.metadata[0].numel()]
        return Sizes(seeds, layers, nodes.numel(), new=True)

    def hops(self) -> list[Hop]:
        """Edges of every hop."""
        out, start = self.out, 0
        hops: list[Hop] = []
        edge_src, edge_dst = host_ids(out.node[out.row]), host_ids(out.node[out.col])
        positions = host_ids(out.edge)
        for dst, count in self.sizes().hops:
            end = start + count
            hops.append(
                Hop(host_ids(dst), edge_dst[start:end], edge_src[start:end], positions[start:end])
            )
            start = end
        return hops

    def tensors(self) -> list[Tensor]:
        """Rows, columns and nodes of the subgraph that all layers share."""
        return [self.row, self.col, self.node]
