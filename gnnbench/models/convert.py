"""Conversion of mini-batches to DGL blocks and PyG data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gnnbench.kernels.dgl_types import DglBlock


def to_dgl(batch: MiniBatch) -> tuple[Tensor, Tensor, list[DglBlock]]:
    """Convert to (input nodes, seeds, DGL blocks), as a DGL sampler returns them.

    Blocks come input layer first, in the graph's id type, on the batch's device. ``srcdata`` and
    ``dstdata`` have the global ids as ``dgl.NID``; ``edata`` has the positions as ``dgl.EID`` and
    the weights as ``"weights"``, each where the batch carries them (positions are the edge ids of a
    DGL graph made from the same CSC). Raises ``MissingError`` where DGL is not installed.
    """
    from gnnbench.kernels.dgl_import import require_dgl

    dgl = require_dgl()
    blocks: list[DglBlock] = []
    for block in batch.blocks:
        nodes = block.src_nodes
        indptr, indices = block.indptr.to(nodes.dtype), block.indices.to(nodes.dtype)
        # DGL's CPU kernels over edge values fail without explicit edge ids.
        ids = torch.arange(block.num_edges, dtype=nodes.dtype, device=nodes.device)
        dgl_block: DglBlock = dgl.create_block(
            ("csc", (indptr, indices, ids)),
            num_src_nodes=block.num_src,
            num_dst_nodes=block.num_dst,
        )
        dgl_block.srcdata[dgl.NID] = nodes
        dgl_block.dstdata[dgl.NID] = block.dst_nodes
        if block.positions is not None:
            dgl_block.edata[dgl.EID] = block.positions.to(nodes.dtype)
        if block.weights is not None:
            dgl_block.edata["weights"] = block.weights
        blocks.append(dgl_block)
    return batch.input_nodes, batch.seeds.to(batch.input_nodes.dtype), blocks


def to_pyg(batch: MiniBatch) -> Data:
    """Convert to a ``torch_geometric.data.Data`` without features.

    One graph of all hops, as ``NeighborLoader`` returns it:

    ``n_id``        global ids ``[num_nodes]``, the seeds first: their outputs are ``[:batch_size]``
    ``edge_index``  int64 ``[2, sampled_edges]``, sources and destinations as local ids, the edges
                    of the hop at the seeds first
    ``num_sampled_nodes``, ``num_sampled_edges``  by hop, for ``trim_to_layer``
    ``e_id``        positions ``[sampled_edges]``, and ``edge_weight``, where the batch has them

    With the ``new`` frontier this is the same work as the blocks. With ``cumulative`` a node is a
    destination of several hops and draws neighbours at each. In one graph it has the edges of all
    hops; a layer uses those of every hop that ``trim_to_layer`` keeps, and a neighbour drawn twice
    counts twice. ``adjs`` has the unchanged blocks for ``conv((x, x[:num_dst]), edge_index)``,
    input layer first: ``(edge_index, e_id, (num_src, num_dst))``, where ``e_id`` is None without
    positions. Tensors are on the batch's device.
    """
    from torch_geometric.data import Data

    whole = joined(batch)
    data = Data(
        n_id=batch.input_nodes.long(),
        edge_index=torch.stack([whole.row, whole.col]),
        num_nodes=batch.input_nodes.numel(),
    )
    if whole.positions is not None:
        data.e_id = whole.positions
    if whole.weights is not None:
        data.edge_weight = whole.weights
    data.batch_size = batch.seeds.numel()
    data.num_sampled_nodes = whole.nodes_by_hop
    data.num_sampled_edges = whole.edges_by_hop
    data.adjs = [(edge_index(b), b.positions, (b.num_src, b.num_dst)) for b in batch.blocks]
    return data


@dataclass(frozen=True)
class Joined:
    """All hops of a batch as one edge list, from the seeds outwards.

    ``row`` and ``col`` int64: local ids of each edge's source and destination; ``nodes_by_hop``
    begins with the seeds, then has the nodes first met at each hop.
    """

    row: Tensor
    col: Tensor
    positions: Tensor | None
    weights: Tensor | None
    nodes_by_hop: list[int]
    edges_by_hop: list[int]


def joined(batch: MiniBatch) -> Joined:
    """Join the blocks; edges that blocks of the ``new`` frontier share are included once."""
    hops = batch.blocks[::-1]
    known = [batch.seeds.numel(), *(block.num_src for block in hops)]
    edges = [block.num_edges for block in hops]
    # Blocks are prefixes of one another exactly where the input block has every edge.
    shared = not hops or batch.sampled_edges == edges[-1]
    parts = hops[-1:] if shared else hops
    if shared:
        edges = [now - before for now, before in zip(edges, [0, *edges], strict=False)]

    def cat(tensors: list[Tensor]) -> Tensor:
        empty = torch.empty(0, dtype=torch.int64, device=batch.seeds.device)
        return torch.cat(tensors) if tensors else empty

    def carried(name: str) -> Tensor | None:
        values = [getattr(block, name) for block in parts]
        return None if not values or values[0] is None else torch.cat(values)

    return Joined(
        row=cat([block.indices.long() for block in parts]),
        col=cat([_columns(block) for block in parts]),
        positions=carried("positions"),
        weights=carried("weights"),
        nodes_by_hop=[now - before for now, before in zip(known, [0, *known], strict=False)],
        edges_by_hop=edges,
    )


def edge_index(block: Block) -> Tensor:
    """The block's edges in PyG's form: int64 ``[2, num_edges]``, sources, destinations."""
    return torch.stack([block.indices.long(), _columns(block)])


def _columns(block: Block) -> Tensor:
    """Local id of each edge's destination, int64."""
    rows = torch.arange(block.num_dst, device=block.indptr.device)
    return torch.repeat_interleave(rows, block.indptr.diff().long(), output_size=block.num_edges)
