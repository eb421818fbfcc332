"""Every sampler inside DGL's ``DataLoader``."""

import pytest
import torch
from sampling_cases import CASES, NAMES, build, one_thread

import gnnbench
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.kernels.dgl_import import require_dgl

try:
    dgl = require_dgl()
except MissingError as error:
    pytest.skip(str(error), allow_module_level=True)

from dgl.nn import SAGEConv


def graph_of(small_graph):
    csc = (small_graph.indptr, small_graph.indices.long(), torch.empty(0, dtype=torch.int64))
    g = dgl.graph(("csc", csc), num_nodes=small_graph.num_nodes)
    g.ndata["feat"], g.ndata["label"] = small_graph.features, small_graph.labels
    g.edata["own"] = torch.arange(g.num_edges())
    return g


def loader(g, seeds, sampler, **how):
    return dgl.dataloading.DataLoader(
        g, seeds, sampler, batch_size=64, shuffle=False, drop_last=False, num_workers=0, **how
    )


def wide(graph):
    return graph.indptr, graph.indices.long()


@pytest.mark.parametrize(
    ("name", "pick"), [(n, p) for n, p, f in CASES if f == "cumulative" and p != "reservoir"]
)
def test_blocks_equal_those_of_the_sampler(name, pick, small_graph):
    g = graph_of(small_graph)
    walks = pick == "random_walk"
    how = {} if not pick.startswith("weighted") else {"weights": torch.ones(g.num_edges())}
    samplers = [build(name, wide(small_graph), [4, 3], pick, seed=5, **how) for _ in range(2)]
    adapter = samplers[0].as_dgl()
    assert isinstance(adapter, dgl.dataloading.Sampler)
    adapter.set_epoch(2)
    batches = list(loader(g, small_graph.train_idx, adapter))
    assert [len(seeds) for _, seeds, _ in batches] == [64, 64, 64, 8]
    for number, (nodes, seeds, blocks) in enumerate(batches):
        assert torch.equal(seeds, small_graph.train_idx[64 * number :][:64])
        batch = samplers[1].sample(seeds, epoch=2, batch=number, with_positions=not walks)
        expected = gnnbench.to_dgl(batch)
        assert sorted(nodes.tolist()) == sorted(expected[0].tolist())
        for ours, theirs in zip(blocks, expected[2], strict=True):
            key = "weights" if walks else dgl.EID
            assert sorted(ours.edata[key].tolist()) == sorted(theirs.edata[key].tolist())
            assert torch.equal(ours.srcdata["feat"], small_graph.features[ours.srcdata[dgl.NID]])
            assert torch.equal(ours.dstdata["label"], small_graph.labels[ours.dstdata[dgl.NID]])
            if not walks:
                assert torch.equal(ours.edata["own"], ours.edata[dgl.EID])


class Net(torch.nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [SAGEConv(dim, 16, "mean"), SAGEConv(16, classes, "mean")]
        )

    def forward(self, blocks, x):
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, x)
            x = x.relu() if number == 0 else x
        return x


@pytest.mark.parametrize("name", NAMES)
@one_thread()
def test_training_loop_with_prefetched_features(name, small_graph):
    torch.manual_seed(0)
    adapter = build(name, wide(small_graph), [5, 5]).as_dgl(
        prefetch_node_feats=["feat"], prefetch_labels=["label"]
    )
    batches = loader(graph_of(small_graph), small_graph.train_idx, adapter)
    model = Net(small_graph.feature_dim, small_graph.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for epoch in range(4):
        adapter.set_epoch(epoch)
        total = 0.0
        for nodes, seeds, blocks in batches:
            assert torch.equal(blocks[0].srcdata["feat"], small_graph.features[nodes])
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                model(blocks, blocks[0].srcdata["feat"]), blocks[-1].dstdata["label"]
            )
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(seeds)
        losses.append(total / 200)
    assert losses[-1] < 0.9 * losses[0]


def test_edge_ids_of_a_dgl_graph_in_another_order(small_graph):
    """Sampler and adapter are built from the CSC and edge ids of a COO graph."""
    generator = torch.Generator().manual_seed(1)
    shuffled = torch.randperm(small_graph.num_edges, generator=generator)
    dst = torch.repeat_interleave(torch.arange(400), small_graph.indptr.diff())
    g = dgl.graph((small_graph.indices.long()[shuffled], dst[shuffled]), num_nodes=400)
    indptr, indices, edge_ids = g.adj_tensors("csc")
    adapter = build("fastsample", (indptr, indices), [4, 3]).as_dgl(edge_ids=edge_ids)
    for _, _, blocks in loader(g, small_graph.train_idx, adapter):
        for block in blocks:
            src, dst = block.edges()
            ends = g.find_edges(block.edata[dgl.EID])
            assert torch.equal(block.srcdata[dgl.NID][src], ends[0])
            assert torch.equal(block.dstdata[dgl.NID][dst], ends[1])


@pytest.mark.parametrize("id_dtype", [torch.int32, torch.int64])
def test_blocks_have_the_id_type_of_the_graph(id_dtype, small_graph):
    """For any id type of the sampler, as DGL does not mix id types."""
    g = graph_of(small_graph)
    g = g.int() if id_dtype == torch.int32 else g
    seeds = small_graph.train_idx.to(id_dtype)
    for indices in (small_graph.indices, small_graph.indices.long()):
        adapter = build("fused-map", (small_graph.indptr, indices), [4, 3]).as_dgl()
        for nodes, _, blocks in loader(g, seeds, adapter):
            assert nodes.dtype == blocks[0].idtype == blocks[0].edata[dgl.EID].dtype == id_dtype
            assert torch.equal(blocks[0].srcdata["feat"], small_graph.features[nodes.long()])


def test_unsupported_uses_of_the_dgl_adapter(small_graph):
    g = graph_of(small_graph)
    adapter = build("hop-by-hop", wide(small_graph), [4, 3]).as_dgl()
    with pytest.raises(UsageError, match="has 3 nodes and 0 edges where the sampler's has 400"):
        adapter.sample(dgl.graph(([], []), num_nodes=3), torch.tensor([0]))
    with pytest.raises(UsageError, match="exclude_eids"):
        adapter.sample(g, torch.tensor([0]), exclude_eids=torch.tensor([0]))
    with pytest.raises(UsageError, match="edge_ids must be one id for each of"):
        build("hop-by-hop", wide(small_graph), [4, 3]).as_dgl(edge_ids=torch.arange(3))
