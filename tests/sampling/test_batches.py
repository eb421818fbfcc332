"""Batches of every kind know themselves: on a graph of six nodes, with arrays written out."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Block, MiniBatch, Sizes
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.dgl_import import dgl_missing, import_dgl
from gnnbench.kernels.pyg_import import EXTENSIONS, pyg_missing
from gnnbench.models.dgl_layers import DglFramework
from gnnbench.sampling.dgl import DglBatch, DglSampler
from gnnbench.sampling.native import native
from gnnbench.sampling.pyg import PygNativeSampler, PygSampler
from gnnbench.sampling.pyg_batch import PygBatch
from gnnbench.sampling.wholegraph import WholeGraphBatch
from gnnbench.validation import gate

# In-neighbours: 0 <- 2 5 | 1 <- 0 | 2 <- 3 0 4 | 3 <- none | 4 <- 4 | 5 <- 1 2
INDPTR = [0, 2, 3, 6, 6, 7, 9]
INDICES = [2, 5, 0, 3, 0, 4, 4, 1, 2]
SEEDS = [5, 1]
# Everything drawn for the seeds, two hops. Hop 1: 5 <- 1 2, 1 <- 0.
FIRST = ([5, 1], [5, 5, 1], [1, 2, 0], [7, 8, 2])
# Hop 2, cumulative: the destinations are 5 1 2 0; new: 2 0.
NEW = ([2, 0], [2, 2, 2, 0, 0], [3, 0, 4, 2, 5], [3, 4, 5, 0, 1])
CUMULATIVE = ([5, 1, 2, 0], [5, 5, 1, *NEW[1]], [1, 2, 0, *NEW[2]], [7, 8, 2, *NEW[3]])
NODES = [5, 1, 2, 0, 3, 4]


def ids(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype)


def by_hand(frontier, positions=True):
    """The mini-batch written out; a hop's row of the ``new`` frontier contains the one before."""
    inner = Block(ids([0, 2, 3]), ids([1, 2, 3]), ids(NODES[:4]), 2, ids(FIRST[3], torch.int64))
    outer = Block(
        ids([0, 2, 3, 6, 8]), ids([1, 2, 3, 4, 3, 5, 2, 0]), ids(NODES), 4,
        ids(CUMULATIVE[3], torch.int64),
    )  # fmt: skip
    if not positions:
        inner.positions = outer.positions = None
    edges = 11 if frontier == "cumulative" else 8
    return MiniBatch(ids(SEEDS), [outer, inner], edges, frontier=frontier, number=7)


@pytest.fixture
def graph():
    n = len(INDPTR) - 1
    return Graph(
        name="six", indptr=torch.tensor(INDPTR), indices=ids(INDICES),
        features=torch.arange(2.0 * n).reshape(n, 2), labels=torch.zeros(n, dtype=torch.int64),
        train_idx=torch.arange(n), val_idx=torch.arange(0), test_idx=torch.arange(0),
        num_classes=2,
    )  # fmt: skip


def agrees(batch, graph, frontier, number=7):
    """A batch of all edges in all its forms, against the arrays above and against itself."""
    assert batch.number == number
    assert batch.seeds.tolist() == SEEDS
    hops, sizes = batch.hops(), batch.sizes()
    second = NEW if frontier == "new" else CUMULATIVE
    for hop, right, (dst, edges) in zip(hops, (FIRST, second), sizes.hops, strict=True):
        assert hop.dst.tolist() == dst.tolist() == right[0]
        assert edges == hop.edge_dst.size == len(right[1])
        drawn = zip(hop.edge_dst, hop.edge_src, hop.positions, strict=True)
        assert sorted(drawn) == sorted(zip(*right[1:], strict=True))
        for array in (hop.dst, hop.edge_dst, hop.edge_src, hop.positions):
            assert array.dtype == np.int64
    gate.check_structure(graph, (9, 9), frontier, torch.tensor(SEEDS), hops)
    assert sizes.seeds.tolist() == SEEDS
    assert sizes.num_nodes == batch.input_nodes.numel() == 6
    assert sizes.num_edges == sum(h.edge_dst.size for h in hops)
    assert batch.input_nodes[:2].tolist() == SEEDS and sorted(batch.input_nodes.tolist()) == [
        *range(6)
    ]
    outer, inner = batch.blocks
    assert outer.src_nodes.tolist() == batch.input_nodes.tolist()
    assert inner.dst_nodes.tolist() == SEEDS
    assert outer.dst_nodes.tolist() == inner.src_nodes.tolist()
    # A layer needs the edges of all its destinations, whatever a hop drew.
    for block, (dst, edge_dst, edge_src, _) in ((outer, CUMULATIVE), (inner, FIRST)):
        assert (block.indptr.dtype, block.indices.dtype) == (torch.int32, torch.int32)
        assert block.num_dst == len(dst)
        rows = torch.repeat_interleave(torch.arange(block.num_dst), block.indptr.diff())
        ends = zip(
            block.dst_nodes[rows].tolist(), block.src_nodes[block.indices.long()].tolist(),
            strict=True,
        )  # fmt: skip
        assert sorted(ends) == sorted(zip(edge_dst, edge_src, strict=True))


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_a_batch_of_ours(frontier, graph):
    batch = by_hand(frontier)
    agrees(batch, graph, frontier)
    assert batch.input_nodes.tolist() == NODES
    assert batch.sampled_edges == batch.sizes().num_edges
    assert [t.numel() for t in batch.tensors()] == [5, 8, 6, 3, 3, 4]
    moved = batch.to("cpu")
    agrees(moved, graph, frontier)
    with pytest.raises(UsageError, match="no positions"):
        by_hand(frontier, positions=False).hops()


def test_sizes_by_hand():
    """Cumulative rows stand for themselves; a new hop is what its row has beyond the last."""
    layers = [(ids([5, 1]), 2, 3), (ids([5, 1, 2, 0]), 4, 8)]
    new = Sizes(ids(SEEDS), layers, 6, new=True)
    assert [(d.tolist(), e) for d, e in new.hops] == [([5, 1], 3), ([2, 0], 5)]
    assert new.num_edges == 8
    cumulative = Sizes(ids(SEEDS), layers, 6)
    assert [(d.tolist(), e) for d, e in cumulative.hops] == [([5, 1], 3), ([5, 1, 2, 0], 8)]
    assert cumulative.num_edges == 11
    assert Sizes(ids([]), [], 0, new=True).num_edges == Sizes(ids([]), [], 0).num_edges == 0
    empty = MiniBatch(ids(SEEDS), [], 0).sizes()
    assert (empty.hops, empty.num_nodes) == ([], 2)


def test_visits_stand_in_the_place_of_positions():
    block = Block(ids([0, 2]), ids([1, 2]), ids([5, 1, 2]), 1, weights=torch.tensor([3.0, 1.0]))
    (hop,) = MiniBatch(ids([5]), [block], 2).hops()
    assert hop.positions is None and hop.visits.tolist() == [3, 1]
    assert hop.edge_src.tolist() == [1, 2]


def stage(spec, graph, fanouts=(9, 9)):
    if missing := spec.missing("cpu"):
        pytest.skip(missing.reason)
    cell = Cell("e", "s", "six", "gcn", batch_size=2, fanouts=fanouts, seed=1)
    return spec.resolved("cpu").build(Job(cell, graph, Counts()))


ENOUGH = pytest.mark.parametrize("fanouts", [(9, 9), (-1, -1)])  # for every row, and all


@ENOUGH
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("sampler", ["hop-by-hop", "fused-map", "fastsample", "gnnlab"])
def test_our_samplers_batches(sampler, frontier, fanouts, graph):
    made = stage(native(sampler, frontier=frontier), graph, fanouts)
    agrees(made.checked(torch.tensor(SEEDS), 7), graph, frontier)
    assert all(b.positions is None for b in made.sample(torch.tensor(SEEDS), 0, 7).blocks)


@ENOUGH
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("id_type", ["int64", "int32"])
def test_dgls_batch(fused, id_type, fanouts, graph):
    made = stage(DglSampler(fused=fused, id_type=id_type), graph, fanouts)
    batch = made.sample(torch.tensor(SEEDS), 0, 7)
    agrees(batch, graph, "cumulative")
    assert batch.tensors() == []
    assert DglFramework().blocks(batch) == batch.dgl_blocks


@pytest.mark.skipif(dgl_missing() is not None, reason="DGL is not installed")
def test_a_source_that_a_block_of_dgls_does_not_have():
    dgl = import_dgl()
    block = SimpleNamespace(
        edges=lambda: (ids([0, 9]), ids([0, 0])), srcdata={dgl.NID: ids([5, 1])},
        dstdata={dgl.NID: ids([5])}, edata={dgl.EID: ids([0, 1])},
    )  # fmt: skip
    with pytest.raises(gate.Fault, match="source has local id 9 in a block of 2 source nodes"):
        DglBatch(dgl, 0, ids([5]), ids([5, 1]), [block]).hops()


PYG = [*(PygSampler(extension=e) for e in EXTENSIONS), PygNativeSampler()]


@ENOUGH
@pytest.mark.parametrize("spec", PYG, ids=repr)
def test_pygs_batches(spec, fanouts, graph):
    made = stage(spec, graph, fanouts)
    batch = made.sample(torch.tensor(SEEDS), 0, 7)
    agrees(batch, graph, "new")
    assert [t.numel() for t in batch.tensors()] == [8, 8, 6]
    for mine, theirs in zip(batch.blocks, batch.pyg_blocks, strict=True):
        assert (mine.num_src, mine.num_dst) == (theirs.num_src, theirs.num_dst)
        assert mine.indptr.diff().tolist() == theirs.degree.tolist()
        assert mine.indices.tolist() == theirs.edge_index[0].tolist()


@pytest.mark.skipif(pyg_missing() is not None, reason="PyG is not installed")
def test_pygs_hops_are_found_in_its_output():
    """torch-sparse does not say where a hop ends; the second one is empty here."""
    out = SimpleNamespace(
        node=torch.tensor([5, 1, 2]), row=torch.tensor([1, 2]), col=torch.tensor([0, 0]),
        edge=torch.tensor([7, 8]), metadata=(torch.tensor([0]),), num_sampled_nodes=None,
        num_sampled_edges=None,
    )  # fmt: skip
    batch = PygBatch(3, out, 2, None)
    assert [(d.tolist(), e) for d, e in batch.sizes().hops] == [([5], 2), ([1, 2], 0)]
    outer, inner = batch.blocks
    assert (outer.indptr.tolist(), outer.num_dst) == ([0, 2, 2, 2], 3)
    assert (inner.indptr.tolist(), inner.indices.tolist()) == ([0, 2], [1, 2])
    assert [h.positions.tolist() for h in batch.hops()] == [[7, 8], []]


def test_wholegraphs_batch(graph):
    """Its answer: nodes, (unused), row offsets and columns by layer, the input layer first."""
    hand = by_hand("cumulative")
    outer, inner = hand.blocks
    drawn = (
        [outer.src_nodes, inner.src_nodes, ids(SEEDS)], None,
        [outer.indptr, inner.indptr], [outer.indices, inner.indices],
    )  # fmt: skip

    def positions(dst, src):
        """The graph has no parallel edges: an edge is where its ends are."""
        return torch.tensor(
            [
                next(p for p in range(INDPTR[d], INDPTR[d + 1]) if INDICES[p] == s)
                for d, s in zip(dst.tolist(), src.tolist(), strict=True)
            ]
        )

    batch = WholeGraphBatch(7, drawn, positions)
    agrees(batch, graph, "cumulative")
    assert batch.input_nodes is drawn[0][0]
    assert [t.numel() for t in batch.tensors()] == [6, 4, 5, 3, 8, 3]


@pytest.mark.parametrize(
    ("device", "topology", "edges", "ids"),
    [
        ("cpu", "default", 7, torch.int64),  # its fused sampler loses edges on int32
        ("cuda", "cpu", 7, torch.int64),
        ("cuda", "default", 2**31 - 1, torch.int32),
        ("cuda", "uva", 2**31 - 1, torch.int32),
        ("cuda", "gpu", 2**31, torch.int64),
    ],
)
def test_dgls_ids_are_the_narrowest_that_are_right(device, topology, edges, ids):
    assert DglSampler(topology=topology).resolved(device).ids_of(edges) is ids


def test_dgls_ids_that_do_not_fit_are_refused():
    with pytest.raises(UnsupportedError, match=r"needs sampler\.id_type=int64"):
        DglSampler(id_type="int32").resolved("cuda").ids_of(2**31)
