"""Edge ids of batches: derived, given and refused; parallel edges; repeated seeds."""

import numpy as np
import pytest
import torch
from adapter_graphs import csc_of, dgl, edges_of, needs_dgl
from sampling_cases import one_thread

import gnnbench
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.sampling.repeated import distinct

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data
from torch_geometric.loader import ImbalancedSampler, NodeLoader
from torch_geometric.nn import GraphConv

N, SRC, DST = edges_of("parallel edges")
INDPTR, INDICES, AT = csc_of(N, SRC, DST)


def build(fanouts=(2, 2), graph=(INDPTR, INDICES), **how):
    return gnnbench.build_sampler("fused-map", graph, list(fanouts), **how)


def data_of(src=SRC, dst=DST, n=N, **more):
    return Data(edge_index=torch.stack([src, dst]), num_nodes=n, **more)


def check_pyg(data, adapter, src=SRC, dst=DST, **how):
    for batch in NodeLoader(data, adapter, batch_size=4, **how):
        row, col = batch.edge_index
        assert torch.equal(src[batch.e_id], batch.n_id[row])
        assert torch.equal(dst[batch.e_id], batch.n_id[col])
        assert torch.equal(batch.edge_attr, batch.e_id.double())
        assert batch.e_id.unique().numel() == batch.num_edges


NUMBERED = {"edge_attr": torch.arange(SRC.numel()).double()}


@pytest.mark.parametrize("filter_per_worker", [False, True])
@pytest.mark.parametrize(
    "how",
    [{}, {"edge_ids": AT}, {"edge_ids": AT.int()}, {"edge_ids": AT.numpy()}, {"data": data_of()}],
)
def test_pyg_batches_have_their_edge_data(how, filter_per_worker):
    check_pyg(data_of(**NUMBERED), build().as_pyg(**how), filter_per_worker=filter_per_worker)


@pytest.mark.parametrize("order", ["destination", "source", "backwards"])
def test_pyg_over_sorted_edges(order):
    at = {"destination": AT, "source": SRC.argsort(stable=True), "backwards": AT.flip(0)}[order]
    src, dst = SRC[at], DST[at]
    check_pyg(data_of(src, dst, **NUMBERED), build().as_pyg(), src, dst)


def test_pyg_over_a_sparse_adjacency():
    value = torch.arange(SRC.numel()).double()
    torch_sparse = pytest.importorskip("torch_sparse")
    adj_t = torch_sparse.SparseTensor(row=DST, col=SRC, value=value, sparse_sizes=(N, N))
    value = adj_t.storage.value()
    for batch in NodeLoader(Data(adj_t=adj_t, num_nodes=N), build().as_pyg(), batch_size=4):
        assert torch.equal(
            batch.adj_t.storage.value().sort().values, value[batch.e_id].sort().values
        )


def test_one_adapter_over_two_orders_of_edges():
    adapter = build().as_pyg()
    check_pyg(data_of(**NUMBERED), adapter)
    check_pyg(data_of(SRC.flip(0), DST.flip(0), **NUMBERED), adapter, SRC.flip(0), DST.flip(0))


def test_pyg_batches_of_a_stored_graph():
    graph = gnnbench.load_dataset("rmat@6")
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    at = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(1))
    src, dst = graph.indices.long()[at], dst[at]
    numbers = torch.arange(graph.num_edges).double()
    data = data_of(src, dst, graph.num_nodes, edge_attr=numbers)
    check_pyg(data, build(graph=graph).as_pyg(), src, dst)


@needs_dgl
@pytest.mark.parametrize("idtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("how", [{}, {"edge_ids": AT}])
def test_dgl_blocks_have_their_edge_data(how, idtype):
    g = dgl.graph((SRC.to(idtype), DST.to(idtype)), num_nodes=N)
    g.edata["number"] = torch.arange(SRC.numel())
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(N, dtype=idtype), build().as_dgl(**how), batch_size=4
    )
    for _, _, blocks in loader:
        for block in blocks:
            ids = block.edata[dgl.EID].long()
            src, dst = (t.long() for t in block.edges())
            assert torch.equal(block.edata["number"], ids)
            assert torch.equal(SRC[ids], block.srcdata[dgl.NID][src].long())
            assert torch.equal(DST[ids], block.dstdata[dgl.NID][dst].long())
            assert ids.unique().numel() == ids.numel()


def first(data, adapter, **how):
    return next(iter(NodeLoader(data, adapter, batch_size=N, **how)))


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (torch.arange(3), "one id for each of"),
        (torch.arange(3.0), "int32 or int64"),
        (AT + 1, "the ids of 29 edges are 0 to 28"),
        (AT.clamp(max=20), "holds an id twice"),
    ],
)
def test_invalid_edge_ids_are_refused(ids, words):
    with pytest.raises(UsageError, match=words):
        build().as_pyg(edge_ids=ids)


def test_edge_ids_of_other_edges_are_refused():
    with pytest.raises(UsageError, match="edge_ids are of other edges"):
        first(data_of(**NUMBERED), build().as_pyg(edge_ids=AT.flip(0)))
    if dgl is not None:
        with pytest.raises(UsageError, match="edge_ids are of other edges"):
            adapter = build().as_dgl(edge_ids=AT.flip(0))
            adapter.sample(dgl.graph((SRC, DST), num_nodes=N), torch.arange(N))


def test_another_graph_is_refused():
    with pytest.raises(UsageError, match="has other edges than the sampler's"):
        first(data_of(DST, SRC), build().as_pyg())
    with pytest.raises(UsageError, match="has other edges than the sampler's"):
        build().as_pyg(data=data_of(DST, SRC))
    with pytest.raises(UsageError, match="has 9 nodes and 28 edges where the sampler's graph has"):
        first(data_of(SRC[1:], DST[1:]), build().as_pyg())
    with pytest.raises(UsageError, match="no edge_index that says which edges"):
        first(Data(num_nodes=N, edge_attr=torch.arange(29)), build().as_pyg())


def test_weights_of_parallel_edges_cannot_be_matched():
    sampler = build(pick="weighted_prefix", weights=torch.rand(SRC.numel()) + 0.1)
    with pytest.raises(UsageError, match="edge_ids cannot be derived: the graph has parallel"):
        first(data_of(), sampler.as_pyg())
    check_ids = {"edge_ids": AT}
    assert first(data_of(), sampler.as_pyg(**check_ids)).num_edges


def test_random_walks_have_no_edge_data():
    with pytest.raises(UnsupportedError, match="'random_walk' gives no edges of the graph"):
        first(data_of(**NUMBERED), build(pick="random_walk").as_pyg())
    assert first(data_of(), build(pick="random_walk").as_pyg()).num_nodes >= N


def test_parallel_edges_are_kept():
    """By the sampler, ``to_pyg``, ``to_dgl`` and both adapters."""
    indptr, indices = torch.tensor([0, 3, 3]), torch.tensor([1, 1, 0])
    batch = build([-1], (indptr, indices)).sample([0], with_positions=True)
    assert sorted(gnnbench.to_pyg(batch).e_id.tolist()) == [0, 1, 2]
    edges = {"src": torch.tensor([1, 1, 0]), "dst": torch.tensor([0, 0, 0])}
    loaded = first(data_of(edges["src"], edges["dst"], 2), build([-1], (indptr, indices)).as_pyg())
    assert sorted(loaded.e_id.tolist()) == [0, 1, 2]
    if dgl is not None:
        g = dgl.graph((edges["src"], edges["dst"]), num_nodes=2)
        _, _, (block,) = build([-1], (indptr, indices)).as_dgl().sample(g, torch.tensor([0]))
        assert sorted(block.edata[dgl.EID].tolist()) == [0, 1, 2]
        assert gnnbench.to_dgl(batch)[2][0].num_edges() == 3


def test_distinct_seeds_keep_the_order_of_first_occurrence():
    seeds, places = distinct(torch.tensor([5, 2, 5, 9, 2]))
    assert (seeds.tolist(), places.tolist()) == ([5, 2, 9], [0, 1, 0, 2, 1])
    assert distinct(torch.tensor([3, 1]))[1] is None and distinct(torch.tensor([]))[1] is None


@pytest.mark.parametrize("frontier", ["new", "cumulative"])
def test_repeated_seeds_in_a_pyg_batch(frontier):
    """0 <- 1, 2; 1 <- 2; 2 <- 3; node 0 is a seed twice."""
    graph = torch.tensor([0, 2, 3, 4, 4]), torch.tensor([1, 2, 2, 3])
    data = data_of(graph[1], torch.tensor([0, 0, 1, 2]), 4)
    batch = first(data, build([-1], graph, frontier=frontier).as_pyg(), input_nodes=[0, 1, 0])
    assert batch.n_id.tolist() == [0, 1, 0, 2] and batch.batch_size == 3
    edges = sorted(zip(*batch.edge_index.tolist(), batch.e_id.tolist(), strict=True))
    assert edges == [(1, 0, 0), (1, 2, 0), (3, 0, 1), (3, 1, 2), (3, 2, 1)]
    assert (batch.num_sampled_nodes, batch.num_sampled_edges) == ([3, 1], [5])
    assert batch.input_id.tolist() == [0, 1, 2]


@one_thread()
def test_loader_with_replacement():
    torch.manual_seed(0)
    x = torch.randn(N, 4).double()
    layers = [GraphConv(4, 4).double() for _ in range(2)]
    run = lambda x, edges: layers[1](layers[0](x, edges).tanh(), edges)  # noqa: E731
    data = data_of(x=x, y=(torch.arange(N) > 6).long())
    expected = run(x, data.edge_index)
    adapter = build([-1, -1]).as_pyg()
    repeats = 0
    for batch in NodeLoader(
        data, adapter, batch_size=30, sampler=ImbalancedSampler(data, None, 60)
    ):
        seeds = batch.n_id[: batch.batch_size]
        repeats += batch.batch_size - seeds.unique().numel()
        torch.testing.assert_close(run(batch.x, batch.edge_index)[: len(seeds)], expected[seeds])
        assert torch.equal(data.y[seeds], batch.y[: len(seeds)])
    assert repeats > 0


@needs_dgl
def test_repeated_seeds_in_dgl_blocks():
    g = dgl.graph((SRC, DST), num_nodes=N)
    seeds = torch.tensor([4, 0, 4, 4, 2])
    nodes, out, blocks = build([-1, -1]).as_dgl().sample(g, seeds)
    assert torch.equal(out, seeds) and torch.equal(nodes[:5], seeds)
    degree = INDPTR.diff()
    assert torch.equal(blocks[-1].in_degrees().long(), degree[seeds])
    assert torch.equal(blocks[0].in_degrees().long(), degree[blocks[0].dstdata[dgl.NID]])


def test_more_seeds_than_nodes_in_pyg_form():
    with pytest.raises(UsageError, match="seeds holds an id twice"):
        build().sample(np.arange(5000) % 7)
    many = first(data_of(), build().as_pyg(), input_nodes=torch.arange(5000) % N)
    assert many.batch_size == N


@needs_dgl
@pytest.mark.parametrize("how", [{}, {"edge_ids": AT}])
@pytest.mark.parametrize("formats", ["csc", "csr", "coo", ["csr", "csc"]])
def test_dgl_graph_of_any_format(formats, how):
    graph = dgl.graph((SRC, DST), num_nodes=N)
    graph.edata["number"] = torch.arange(SRC.numel())
    graph = graph.formats(formats)
    adapter = build(fanouts=(-1, -1)).as_dgl(**how)
    drawn = 0
    for _, _, blocks in dgl.dataloading.DataLoader(graph, torch.arange(N), adapter, batch_size=4):
        for block in blocks:
            at, (src, dst) = block.edata[dgl.EID], block.edges()
            assert torch.equal(block.edata["number"], at)
            assert torch.equal(block.srcdata[dgl.NID][src.long()], SRC[at])
            assert torch.equal(block.dstdata[dgl.NID][dst.long()], DST[at])
            drawn += at.numel()
    assert drawn >= SRC.numel()
