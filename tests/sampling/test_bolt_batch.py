"""A batch of GraphBolt's in our terms, by hand."""

from types import SimpleNamespace

import numpy as np
import torch

from gnnbench.sampling.graphbolt import BoltBatch


def layer(indptr, indices, rows, columns, edges):
    tensors = [torch.tensor(t) for t in (indptr, indices, rows, columns, edges)]
    return SimpleNamespace(
        sampled_csc=SimpleNamespace(indptr=tensors[0], indices=tensors[1]),
        original_row_node_ids=tensors[2], original_column_node_ids=tensors[3],
        original_edge_ids=tensors[4],
    )  # fmt: skip


# Seeds 5 and 2; 5 has neighbours 7 and 2, 2 has none; then of 5, 2 and 7 the last has 5 twice.
INNER = layer([0, 2, 2], [2, 1], [5, 2, 7], [5, 2], [11, 12])
OUTER = layer([0, 1, 1, 3], [3, 0, 0], [5, 2, 7, 9], [5, 2, 7], [10, 20, 21])


def batch():
    seeds = INNER.original_column_node_ids
    drawn = SimpleNamespace(
        seeds=seeds, input_nodes=OUTER.original_row_node_ids, sampled_subgraphs=[OUTER, INNER],
        blocks=["outer", "inner"],
    )  # fmt: skip
    return BoltBatch(4, drawn)


def test_blocks_the_input_layer_first():
    outer, inner = batch().blocks
    assert (outer.num_dst, outer.num_src, inner.num_dst, inner.num_src) == (3, 4, 2, 3)
    assert outer.indptr.tolist() == [0, 1, 1, 3] and outer.indices.tolist() == [3, 0, 0]
    assert {t.dtype for b in (outer, inner) for t in (b.indptr, b.indices)} == {torch.int32}
    assert inner.src_nodes.tolist() == [5, 2, 7]
    assert batch().dgl_blocks == ["outer", "inner"] and batch().number == 4


def test_sizes_from_the_seeds_outwards():
    sizes = batch().sizes()
    assert [(dst.tolist(), edges) for dst, edges in sizes.hops] == [([5, 2], 2), ([5, 2, 7], 3)]
    assert (sizes.num_edges, sizes.num_nodes) == (5, 4)


def test_edges_by_their_ends_and_positions():
    first, second = batch().hops()
    assert np.array_equal(first.edge_dst, [5, 5]) and np.array_equal(first.edge_src, [7, 2])
    assert np.array_equal(first.positions, [11, 12]) and np.array_equal(first.dst, [5, 2])
    assert np.array_equal(second.edge_dst, [5, 7, 7]) and np.array_equal(second.edge_src, [9, 5, 5])
    assert np.array_equal(second.positions, [10, 20, 21])
