"""With all neighbours, a model on a batch equals the model on the graph, in float64."""

from functools import cache
from itertools import pairwise

import pytest
import torch
from adapter_graphs import GRAPHS, csc_of, dgl, edges_of, needs_dgl
from sampling_cases import one_thread

import gnnbench

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv
from torch_geometric.utils import trim_to_layer

MODELS = ("sum", "mean", "gcn", "gat")
SAMPLERS = ("hop-by-hop", "fused-map", "fastsample")


def pyg_kinds():
    return {
        "sum": lambda i, o: GraphConv(i, o, aggr="add"),
        "mean": lambda i, o: SAGEConv(i, o, aggr="mean"),
        "gcn": lambda i, o: GCNConv(i, o, normalize=False),
        "gat": lambda i, o: GATConv(i, o, add_self_loops=False),
    }


@cache
def layers_of(kinds, model, depth):
    torch.manual_seed(1)
    sizes = [6, *[5] * (depth - 1), 3]
    return [kinds()[model](a, b).double() for a, b in pairwise(sizes)]


def inputs(name, request):
    real_data = request.getfixturevalue("real_data") if name == "real" else None
    n, src, dst = edges_of(name, real_data)
    x = torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    out = torch.bincount(src, minlength=n).clamp(min=1).double()
    into = torch.bincount(dst, minlength=n).clamp(min=1).double()
    return n, src, dst, x, (out[src] * into[dst]).rsqrt()


def seeds_of(n):
    """Nodes in random order."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(4))[: min(n, 11)]


def pyg_run(layers, model, x, edge_index, weight, sizes=None):
    for number, layer in enumerate(layers):
        if sizes is not None:
            x, edge_index, weight = trim_to_layer(number, *sizes, x, edge_index, weight)
        x = layer(x, edge_index, weight) if model == "gcn" else layer(x, edge_index)
        x = x.tanh()
    return x


@pytest.mark.parametrize("name", GRAPHS)
@one_thread()
def test_pyg_batches_equal_the_graph(name, request):
    n, src, dst, x, weight = inputs(name, request)
    indptr, indices, _ = csc_of(n, src, dst)
    data = Data(x=x, edge_index=torch.stack([src, dst]), edge_weight=weight)
    seeds = seeds_of(n)
    for depth, sampler in zip((1, 2, 3), SAMPLERS, strict=True):
        built = gnnbench.build_sampler(sampler, (indptr, indices), [-1] * depth)
        batches = list(NodeLoader(data, built.as_pyg(), input_nodes=seeds, batch_size=6))
        for model in MODELS:
            layers = layers_of(pyg_kinds, model, depth)
            expected = pyg_run(layers, model, x, data.edge_index, weight)
            for batch in batches:
                assert batch.e_id.unique().numel() == batch.num_edges
                assert torch.equal(weight[batch.e_id], batch.edge_weight)
                nodes = batch.n_id[: batch.batch_size]
                for sizes in (None, (batch.num_sampled_nodes, batch.num_sampled_edges)):
                    actual = pyg_run(
                        layers, model, batch.x, batch.edge_index, batch.edge_weight, sizes
                    )
                    torch.testing.assert_close(
                        actual[: batch.batch_size], expected[nodes], rtol=1e-12, atol=1e-12
                    )


def dgl_kinds():
    from dgl.nn import GATConv, GraphConv, SAGEConv

    return {
        "sum": lambda i, o: GraphConv(i, o, norm="none", allow_zero_in_degree=True),
        "mean": lambda i, o: SAGEConv(i, o, "mean"),
        "gcn": lambda i, o: GraphConv(i, o, norm="none", allow_zero_in_degree=True),
        "gat": lambda i, o: GATConv(i, o, 1, allow_zero_in_degree=True),
    }


def dgl_run(layers, model, graphs, x):
    for layer, graph in zip(layers, graphs, strict=True):
        options = {"edge_weight": graph.edata["weight"]} if model == "gcn" else {}
        x = layer(graph, x, **options)
        x = (x.flatten(1) if model == "gat" else x).tanh()
    return x


@needs_dgl
@pytest.mark.parametrize(
    ("name", "frontier"), [*((name, None) for name in GRAPHS), ("hubs", "new"), ("star", "new")]
)
@one_thread()
def test_dgl_blocks_equal_the_graph(name, frontier, request):
    n, src, dst, x, weight = inputs(name, request)
    indptr, indices, _ = csc_of(n, src, dst)
    g = dgl.graph((src, dst), num_nodes=n)
    g.ndata["x"], g.edata["weight"] = x, weight
    for depth, sampler in zip((1, 2, 3), SAMPLERS, strict=True):
        built = gnnbench.build_sampler(
            sampler, (indptr, indices), [-1] * depth, frontier=frontier
        ).as_dgl()
        batches = list(dgl.dataloading.DataLoader(g, seeds_of(n), built, batch_size=6))
        for model in MODELS:
            layers = layers_of(dgl_kinds, model, depth)
            expected = dgl_run(layers, model, [g] * depth, x)
            for _, nodes, blocks in batches:
                actual = dgl_run(layers, model, blocks, blocks[0].srcdata["x"])
                torch.testing.assert_close(actual, expected[nodes], rtol=1e-12, atol=1e-12)
