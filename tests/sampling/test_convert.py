"""Blocks in DGL's and PyG's form, written by hand and compared with both packages."""

import pytest
import torch
from sampling_cases import CASES, build

import gnnbench
from gnnbench.core.minibatch import Block, MiniBatch


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def outer() -> Block:
    """Seed 7 draws 7 <- 2 and 7 <- 9."""
    return Block(i32(0, 2), i32(1, 2), i32(7, 2, 9), 1, torch.tensor([40, 42]))


def cumulative() -> MiniBatch:
    """Then 7 <- 5, 9 <- 7."""
    inner = Block(i32(0, 1, 1, 2), i32(3, 0), i32(7, 2, 9, 5), 3, torch.tensor([41, 60]))
    return MiniBatch(i32(7), [inner, outer()], 4)


def new() -> MiniBatch:
    """Then 9 <- 5."""
    nodes, places = i32(7, 2, 9, 5), torch.tensor([40, 42, 61])
    return MiniBatch(i32(7), [Block(i32(0, 2, 2, 3), i32(1, 2, 3), nodes, 3, places), outer()], 3)


def test_pyg_form_of_cumulative_blocks():
    data = gnnbench.to_pyg(cumulative())
    assert data.n_id.tolist() == [7, 2, 9, 5] and data.num_nodes == 4
    assert data.edge_index.tolist() == [[1, 2, 3, 0], [0, 0, 0, 2]]
    assert data.e_id.tolist() == [40, 42, 41, 60]
    assert data.batch_size == 1
    assert (data.num_sampled_nodes, data.num_sampled_edges) == ([1, 2, 1], [2, 2])
    (inner, inner_ids, inner_size), (first, first_ids, first_size) = data.adjs
    assert inner.tolist() == [[3, 0], [0, 2]] and inner_size == (4, 3)
    assert first.tolist() == [[1, 2], [0, 0]] and first_size == (3, 1)
    assert inner_ids.tolist() == [41, 60] and first_ids.tolist() == [40, 42]


def test_pyg_form_of_new_blocks_has_each_edge_once():
    data = gnnbench.to_pyg(new())
    assert data.edge_index.tolist() == [[1, 2, 3], [0, 0, 2]]
    assert data.e_id.tolist() == [40, 42, 61]
    assert (data.num_sampled_nodes, data.num_sampled_edges) == ([1, 2, 1], [2, 1])


def test_empty_batches():
    for frontier in ("cumulative", "new"):
        graph = (torch.tensor([0, 0]), i32())
        batch = build("hop-by-hop", graph, [3, 2], frontier=frontier).sample([])
        data = gnnbench.to_pyg(batch)
        assert data.edge_index.shape == (2, 0)
        assert (data.num_sampled_nodes, data.num_sampled_edges) == ([0, 0, 0], [0, 0])


def test_weights_go_along(small_graph):
    batch = build("hop-by-hop", small_graph, [3, 2], "random_walk").sample([3, 5])
    data = gnnbench.to_pyg(batch)
    assert "e_id" not in data and data.edge_weight.shape == (batch.sampled_edges,)
    assert [ids for _, ids, _ in data.adjs] == [None, None]


@pytest.mark.parametrize(("name", "pick", "frontier"), CASES)
def test_pyg_form_holds_the_batchs_edges(name, pick, frontier, small_graph):
    walks = pick == "random_walk"
    sampler = build(name, small_graph, [4, 3, 2], pick, frontier=frontier, with_positions=not walks)
    batch = sampler.sample(small_graph.train_idx[:30])
    data = gnnbench.to_pyg(batch)
    assert sum(data.num_sampled_nodes) == data.num_nodes == batch.input_nodes.numel()
    assert sum(data.num_sampled_edges) == data.edge_index.shape[1] == batch.sampled_edges
    if not walks:
        src, dst = data.n_id[data.edge_index]
        assert torch.equal(small_graph.indices[data.e_id].long(), src)
        assert torch.equal(torch.searchsorted(small_graph.indptr, data.e_id, right=True) - 1, dst)
    start = 0
    ends = torch.tensor(data.num_sampled_nodes).cumsum(0)
    for hop, edges in enumerate(data.num_sampled_edges):
        part = data.edge_index[:, start : start + edges]
        assert (part[0] < ends[hop + 1]).all()
        assert (part[1] < ends[hop]).all()
        start += edges


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_pygs_layers_trim_as_the_blocks_say(frontier, small_graph):
    """With ``trim_to_layer`` the new frontier's edge_index computes what its blocks do."""
    nn = pytest.importorskip("torch_geometric.nn")
    from torch_geometric.utils import trim_to_layer

    torch.manual_seed(3)
    batch = build("fused-map", small_graph, [4, 3, 2], frontier=frontier).sample(
        small_graph.train_idx[:30]
    )
    data = gnnbench.to_pyg(batch)
    layers = [nn.SAGEConv(24, 24) for _ in range(3)]
    features = small_graph.features[data.n_id]

    x = features
    for layer, (edge_index, _, (_, num_dst)) in zip(layers, data.adjs, strict=True):
        x = layer((x, x[:num_dst]), edge_index).relu()
    by_blocks = x

    x, edge_index = features, data.edge_index
    for number, layer in enumerate(layers):
        x, edge_index, _ = trim_to_layer(
            number, data.num_sampled_nodes, data.num_sampled_edges, x, edge_index
        )
        x = layer(x, edge_index).relu()
    trimmed = x[: data.batch_size]

    assert by_blocks.shape == trimmed.shape == (30, 24)
    assert torch.allclose(by_blocks, trimmed, atol=1e-5) == (frontier == "new")


@pytest.fixture
def dgl():
    from gnnbench.core.errors import MissingError
    from gnnbench.kernels.dgl_import import require_dgl

    try:
        return require_dgl()
    except MissingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("id_dtype", [torch.int32, torch.int64])
def test_dgl_form(dgl, id_dtype):
    batch = cumulative()
    for block in batch.blocks:
        block.src_nodes = block.src_nodes.to(id_dtype)
    batch.blocks[1].weights = torch.tensor([2.0, 1.0])
    nodes, seeds, (inner, first) = gnnbench.to_dgl(batch)
    assert nodes.tolist() == [7, 2, 9, 5] and seeds.tolist() == [7]
    assert nodes.dtype == seeds.dtype == inner.idtype == id_dtype
    assert (inner.num_src_nodes(), inner.num_dst_nodes()) == (4, 3)
    assert [end.tolist() for end in inner.edges()] == [[3, 0], [0, 2]]
    assert inner.srcdata[dgl.NID].tolist() == [7, 2, 9, 5]
    assert inner.dstdata[dgl.NID].tolist() == [7, 2, 9]
    assert inner.edata[dgl.EID].tolist() == [41, 60] and inner.edata[dgl.EID].dtype == id_dtype
    assert "weights" not in inner.edata
    assert first.edata["weights"].tolist() == [2, 1]
    first.update_all(dgl.function.copy_e("weights", "m"), dgl.function.sum("m", "total"))
    assert float(first.dstdata["total"].sum()) == 3
    assert inner.is_block and first.is_block


def test_dgls_own_sampler_gives_the_same_blocks_where_it_takes_every_edge(dgl, small_graph):
    """Field by field: types, counts, ids, and the edges of every destination."""
    empty = torch.empty(0, dtype=torch.int64)
    csc = (small_graph.indptr, small_graph.indices.long(), empty)
    g = dgl.graph(("csc", csc), num_nodes=small_graph.num_nodes)
    seeds = small_graph.train_idx[:20]
    theirs = dgl.dataloading.NeighborSampler([1000, 1000]).sample(g, seeds)
    pair = (small_graph.indptr, small_graph.indices.long())
    sampler = gnnbench.build_sampler("hop-by-hop", pair, [1000, 1000], with_positions=True)
    ours = gnnbench.to_dgl(sampler.sample(seeds))
    assert torch.equal(ours[1], theirs[1]) and ours[0].dtype == theirs[0].dtype
    assert torch.equal(ours[0].sort().values, theirs[0].sort().values)
    for a, b in zip(ours[2], theirs[2], strict=True):
        assert (a.idtype, a.device, a.is_block) == (b.idtype, b.device, b.is_block)
        assert a.num_edges() == b.num_edges() and a.num_dst_nodes() == b.num_dst_nodes()
        rows = []
        for block in (a, b):
            src, dst = block.edges()
            ends = (block.dstdata[dgl.NID][dst], block.edata[dgl.EID], block.srcdata[dgl.NID][src])
            rows.append(sorted(zip(*(t.tolist() for t in ends), strict=True)))
        assert rows[0] == rows[1]
