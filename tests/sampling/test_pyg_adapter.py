"""Every sampler inside PyG's ``NodeLoader``."""

import pytest
import torch
from sampling_cases import CASES, NAMES, build, one_thread

import gnnbench
from gnnbench.core.errors import UnsupportedError, UsageError

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import trim_to_layer


def loader(graph, sampler, batch_size=64, **how):
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    edges = torch.stack([graph.indices.long(), dst])
    data = Data(x=graph.features, y=graph.labels, edge_index=edges)
    return NodeLoader(
        data, sampler, input_nodes=graph.train_idx, batch_size=batch_size,
        filter_per_worker=False, **how,
    )  # fmt: skip


class Net(torch.nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(dim, 16), SAGEConv(16, classes)])

    def forward(self, batch):
        x, edge_index = batch.x, batch.edge_index
        for number, layer in enumerate(self.layers):
            x, edge_index, _ = trim_to_layer(
                number, batch.num_sampled_nodes, batch.num_sampled_edges, x, edge_index
            )
            x = layer(x, edge_index)
            x = x.relu() if number == 0 else x
        return x[: batch.batch_size]


@pytest.mark.parametrize(("name", "pick", "frontier"), [c for c in CASES if c[1] != "reservoir"])
def test_batches_equal_those_of_the_sampler(name, pick, frontier, small_graph):
    walks = pick == "random_walk"
    sampler = build(name, small_graph, [4, 3], pick, frontier=frontier, seed=5)
    adapter = sampler.as_pyg()
    adapter.set_epoch(2)
    same = build(name, small_graph, [4, 3], pick, frontier=frontier, seed=5)
    batches = list(loader(small_graph, adapter))
    assert [b.batch_size for b in batches] == [64, 64, 64, 8]
    for number, batch in enumerate(batches):
        seeds = small_graph.train_idx[64 * number : 64 * (number + 1)]
        expected = gnnbench.to_pyg(
            same.sample(seeds, epoch=2, batch=number, with_positions=not walks)
        )
        assert batch.n_id[: batch.batch_size].tolist() == seeds.tolist()
        assert torch.equal(batch.x, small_graph.features[batch.n_id])
        assert batch.num_sampled_nodes == expected.num_sampled_nodes
        assert batch.num_sampled_edges == expected.num_sampled_edges
        assert sorted(batch.n_id.tolist()) == sorted(expected.n_id.tolist())
        if walks:
            assert "e_id" not in batch
        else:
            assert sorted(batch.e_id.tolist()) == sorted(expected.e_id.tolist())
            src = batch.n_id[batch.edge_index[0]]
            assert torch.equal(small_graph.indices[batch.e_id].long(), src)


@pytest.mark.parametrize(
    ("name", "frontier"), [*((name, "cumulative") for name in NAMES), ("fused-map", "new")]
)
@one_thread()
def test_training_loop_learns(name, frontier, small_graph):
    torch.manual_seed(0)
    adapter = build(name, small_graph, [5, 5], frontier=frontier).as_pyg()
    batches = loader(small_graph, adapter, shuffle=True)
    model = Net(small_graph.feature_dim, small_graph.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for epoch in range(4):
        adapter.set_epoch(epoch)
        total = 0.0
        for batch in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * batch.batch_size
        losses.append(total / 200)
    assert losses[-1] < 0.9 * losses[0]


def test_workers_sample_the_same_batches_as_one_process(small_graph):
    edges = []
    for workers in (0, 2):
        adapter = build("fused-map", small_graph, [4, 3]).as_pyg()
        adapter.set_epoch(1)
        batches = loader(small_graph, adapter, batch_size=32, num_workers=workers)
        edges.append([batch.e_id.tolist() for batch in batches])
    assert edges[0] == edges[1]


def test_batches_continue_without_set_epoch(small_graph):
    adapter = build("hop-by-hop", small_graph, [4, 3]).as_pyg()
    batches = loader(small_graph, adapter)
    first, second = ([b.e_id.tolist() for b in batches] for _ in range(2))
    assert first != second
    adapter.set_epoch(0)
    assert [b.e_id.tolist() for b in batches] == first
    adapter.set_epoch(0, batch=4)
    assert [b.e_id.tolist() for b in batches] == second


def test_edge_ids_of_a_graph_in_another_order(small_graph):
    """``edge_ids`` are ids of the user's edges, whose data is in the batch."""
    generator = torch.Generator().manual_seed(1)
    shuffled = torch.randperm(small_graph.num_edges, generator=generator)
    adapter = build("hop-by-hop", small_graph, [4, 3]).as_pyg(edge_ids=shuffled)
    dst = torch.repeat_interleave(torch.arange(400), small_graph.indptr.diff())
    edges = torch.stack([small_graph.indices.long(), dst])
    data = Data(x=small_graph.features, edge_index=torch.empty_like(edges))
    data.edge_index[:, shuffled] = edges
    data.edge_attr = torch.arange(small_graph.num_edges)
    batches = NodeLoader(
        data, adapter, input_nodes=small_graph.train_idx, batch_size=50, filter_per_worker=False
    )
    for batch in batches:
        ends = data.edge_index[:, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index], ends)
        assert torch.equal(batch.edge_attr, batch.e_id)


def test_unsupported_uses_of_the_pyg_adapter(small_graph):
    sampler = build("hop-by-hop", small_graph, [4, 3])
    with pytest.raises(UsageError, match="edge_ids must be one id for each of"):
        sampler.as_pyg(edge_ids=torch.arange(3))
    with pytest.raises(UsageError, match="edge_ids must be an int32 or int64 tensor"):
        sampler.as_pyg(edge_ids=torch.arange(3.0))
    with pytest.raises(UnsupportedError, match="use NodeLoader"):
        sampler.as_pyg().sample_from_edges(None)
    with pytest.raises(UsageError, match="epoch must be at least 0"):
        sampler.as_pyg().set_epoch(-1)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [s.name for s in gnnbench.samplers() if "unsafe" not in s.options])
def test_gpu_sampler_works_in_the_loader(name, small_graph):
    all_nodes = name.startswith(("pgsampler", "dgl-fusion"))  # expand every node of a hop
    options = {"frontier": "cumulative"} if all_nodes else {}
    adapter = build(name, small_graph, [4, 3], device="cuda", **options).as_pyg()
    for batch in loader(small_graph, adapter):
        assert torch.equal(batch.x, small_graph.features[batch.n_id])
        src = batch.n_id[batch.edge_index[0]]
        assert torch.equal(small_graph.indices[batch.e_id].long(), src)
