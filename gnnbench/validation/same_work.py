"""Check whether two mini-batches contain the same work, up to a renaming of local ids.

Each sampler numbers the nodes of a batch in its own order. Two samples are equal if, block by
block, their multisets of (destination, position, neighbour) in global ids are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.schema.arrays import Array


def malformed(batch: MiniBatch, frontier: str = "cumulative") -> str | None:
    """Return the first structural rule that ``batch`` violates, as a sentence, or None.

    The rules: offsets begin with 0, never fall and end with the number of edges; local ids are in
    range; sources are unique and each is a destination or the end of an edge; the destinations of
    the last block are the seeds in their order, those of any other are the next block's sources in
    theirs; with the ``new`` frontier a block begins with all of the next one's rows;
    ``sampled_edges`` counts each sampled edge once. Edges are not compared with the graph.
    ``frontier`` is ``"cumulative"`` or ``"new"``.
    """
    wanted = _numpy(batch.seeds)
    inner: Block | None = None
    for hop, block in enumerate(reversed(batch.blocks), start=1):
        fault = _block_fault(block)
        if fault is None and not np.array_equal(_numpy(block.dst_nodes), wanted):
            whose = "seeds" if inner is None else "nodes known before"
            fault = f"the destinations are not the {whose}, in their order"
        if fault is None and frontier == "new" and inner is not None:
            fault = _prefix_fault(inner, block)
        if fault is not None:
            return f"hop {hop}: {fault}"
        wanted, inner = _numpy(block.src_nodes), block
    # With the new frontier the input block's rows hold every edge of the batch once.
    counted = batch.blocks if frontier == "cumulative" else batch.blocks[:1]
    edges = sum(block.num_edges for block in counted)
    if batch.sampled_edges != edges:
        return f"sampled_edges is {batch.sampled_edges} where the blocks hold {edges} edges"
    return None


def same_work(a: MiniBatch, b: MiniBatch, frontier: str = "cumulative") -> str | None:
    """Return how the sample in ``b`` differs from that in ``a``, as a sentence, or None.

    Both must be well-formed (see :func:`malformed`). Compared are the seeds in their order, every
    block's destinations as sets and its edges as multisets of (destination, position, neighbour),
    or of (destination, neighbour) where neither carries positions, with the edge's weight where
    they carry weights, bit by bit. Ids are compared by value, whatever their dtype and device.
    """
    for name, batch in (("first", a), ("second", b)):
        fault = malformed(batch, frontier)
        if fault is not None:
            return f"the {name} mini-batch is malformed: {fault}"
    if not np.array_equal(_numpy(a.seeds), _numpy(b.seeds)):
        return "the seeds differ"
    if len(a.blocks) != len(b.blocks):
        return f"there are {len(a.blocks)} blocks in the first and {len(b.blocks)} in the second"
    pairs = zip(reversed(a.blocks), reversed(b.blocks), strict=True)
    for hop, (one, other) in enumerate(pairs, start=1):
        fault = _work_fault(one, other)
        if fault is not None:
            return f"hop {hop}: {fault}"
    return None


def _numpy(t: Tensor) -> Array:
    return t.detach().cpu().numpy()


def _block_fault(block: Block) -> str | None:
    indptr, indices, nodes = map(_numpy, (block.indptr, block.indices, block.src_nodes))
    if indptr.ndim != 1 or indices.ndim != 1 or nodes.ndim != 1:
        return "indptr, indices and src_nodes must have one dimension"
    if indptr.size != block.num_dst + 1:
        return f"indptr has {indptr.size} entries for {block.num_dst} destinations"
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        return f"indptr does not rise from 0 to the {indices.size} edges"
    if nodes.size < block.num_dst:
        return f"there are {nodes.size} source nodes and {block.num_dst} destinations among them"
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= nodes.size):
        return f"a local id lies outside the {nodes.size} source nodes"
    ordered = np.sort(nodes)
    if (ordered[1:] == ordered[:-1]).any():
        return "a source node is listed twice"
    met = np.zeros(nodes.size, dtype=bool)
    met[: block.num_dst] = True
    met[indices] = True
    if not met.all():
        return f"source node {nodes[~met][0]} is neither a destination nor the end of an edge"
    for name in ("positions", "weights"):
        values = getattr(block, name)
        if values is not None and values.numel() != indices.size:
            return f"there are {values.numel()} {name} for {indices.size} edges"
    return None


def _prefix_fault(inner: Block, outer: Block) -> str | None:
    rows, edges = inner.num_dst, inner.num_edges
    same = np.array_equal(_numpy(outer.indptr)[: rows + 1], _numpy(inner.indptr))
    for name in ("indices", "positions", "weights"):
        one, other = getattr(inner, name), getattr(outer, name)
        if one is not None and other is not None:
            same = same and np.array_equal(_numpy(other)[:edges], _numpy(one))
    return None if same else "the block does not begin with the rows of the hop before"


def _sorted_edges(block: Block) -> list[Array]:
    """(destination, position or neighbour, ...) of every edge, in one order for all renamings."""
    nodes = _numpy(block.src_nodes)
    columns = [np.repeat(nodes[: block.num_dst], np.diff(_numpy(block.indptr)))]
    if block.positions is not None:
        columns.append(_numpy(block.positions))
    columns.append(nodes[_numpy(block.indices)])
    if block.weights is not None:
        weights = _numpy(block.weights)
        columns.append(weights.view(f"u{weights.itemsize}"))
    if block.positions is None:
        order = np.lexsort(columns[::-1])
    else:  # one neighbour each and, where each comes once, one destination
        order = np.argsort(columns[1])
        ordered = columns[1][order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort(columns[1::-1])
    return [column[order] for column in columns]


def _work_fault(a: Block, b: Block) -> str | None:
    if not np.array_equal(np.sort(_numpy(a.dst_nodes)), np.sort(_numpy(b.dst_nodes))):
        return f"the destinations differ ({a.num_dst} and {b.num_dst})"
    for name in ("positions", "weights"):
        if (getattr(a, name) is None) != (getattr(b, name) is None):
            return f"only one of the two mini-batches carries {name}"
    if a.num_edges != b.num_edges:
        return f"{a.num_edges} and {b.num_edges} edges were drawn"
    if a.weights is not None and b.weights is not None and a.weights.dtype != b.weights.dtype:
        return f"the weights are {a.weights.dtype} and {b.weights.dtype}"
    one, other = _sorted_edges(a), _sorted_edges(b)
    differs = np.zeros(a.num_edges, dtype=bool)
    for x, y in zip(one, other, strict=True):
        differs |= x != y
    if not differs.any():
        return None
    at = int(np.argmax(differs))
    names = _columns(a)
    return (
        f"the edges differ, first at ({', '.join(names)}) = {_tuple(one, at)} in the first and"
        f" {_tuple(other, at)} in the second"
    )


def _columns(block: Block) -> list[str]:
    names = ["destination", "neighbour"]
    if block.positions is not None:
        names.insert(1, "position")
    if block.weights is not None:
        names.append("bits of the weight")
    return names


def _tuple(columns: Sequence[Array], at: int) -> str:
    return f"({', '.join(str(column[at]) for column in columns)})"
