"""Features of PyG's and DGL's loaders that the adapters do not support are refused."""

import pytest
import torch
from adapter_graphs import dgl, needs_dgl

import gnnbench
from gnnbench.core.errors import UnsupportedError

pytest.importorskip("torch_geometric")

from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NeighborLoader, NodeLoader
from torch_geometric.sampler import NodeSamplerInput

EDGES = torch.tensor([[1, 2], [0, 0]])
GRAPH = torch.tensor([0, 2, 2, 2]), torch.tensor([1, 2])


def build(name="fused-map", **how):
    return gnnbench.build_sampler(name, GRAPH, [2], **how)


def test_sampler_without_the_new_frontier_needs_an_explicit_one_for_pyg():
    with pytest.raises(UnsupportedError, match="'pgsampler' has no frontier 'new'"):
        build("pgsampler").as_pyg()
    assert build("pgsampler", frontier="cumulative").as_pyg() is not None


def test_chosen_frontier_is_kept():
    assert build().as_pyg()._inner.frontier == "new"
    assert build(frontier="cumulative").as_pyg()._inner.frontier == "cumulative"
    assert build().frontier == "cumulative"


@pytest.mark.parametrize(
    "option",
    ["disjoint", "subgraph_type", "directed", "time_attr", "replace", "weight_attr", "nosuch"],
)
def test_options_of_pygs_sampler_are_refused(option):
    with pytest.raises(UnsupportedError, match=f"^{option}: "):
        build().as_pyg(**{option: True})
    with pytest.raises(UnsupportedError, match=f"^{option}: "):
        node_input = NodeSamplerInput(input_id=None, node=torch.tensor([0]))
        build().as_pyg().sample_from_nodes(node_input, **{option: True})


def test_seed_times_are_refused():
    data = Data(edge_index=EDGES, time=torch.tensor([5, 9]), num_nodes=3)
    loader = NodeLoader(
        data, build().as_pyg(), input_nodes=torch.tensor([0]), input_time=torch.tensor([0])
    )
    with pytest.raises(UnsupportedError, match=r"^input_time: "):
        next(iter(loader))


def test_heterogeneous_data_is_refused():
    data = HeteroData()
    data["p"].x = torch.arange(3.0)[:, None]
    data["p", "to", "p"].edge_index = EDGES
    with pytest.raises(UnsupportedError, match=r"one kind of node.*to_homogeneous"):
        next(iter(NodeLoader(data, build().as_pyg(), input_nodes="p")))
    with pytest.raises(UnsupportedError, match=r"HeteroData.*to_homogeneous"):
        build().as_pyg(data=data)


def test_feature_stores_and_links_are_refused():
    data = Data(edge_index=EDGES, num_nodes=3)
    loader = NodeLoader((data, data), build().as_pyg(), input_nodes=torch.tensor([0]))
    with pytest.raises(UnsupportedError, match="the loader's data is a tuple"):
        next(iter(loader))
    with pytest.raises(UnsupportedError, match="not from links"):
        next(iter(LinkLoader(data, build().as_pyg())))


def test_graph_level_attributes_are_kept():
    data = Data(edge_index=EDGES, x=torch.arange(3.0), note="kept", num_nodes=3)
    mask = torch.tensor([True, False, True])
    batch = next(iter(NodeLoader(data, build().as_pyg(), input_nodes=mask, batch_size=2)))
    assert batch.note == "kept" and batch.input_id.tolist() == [0, 2]
    assert torch.equal(batch.x, data.x[batch.n_id])


@needs_dgl
@pytest.mark.parametrize("option", ["edge_dir", "prob", "mask", "replace", "exclude", "nosuch"])
def test_options_of_dgls_sampler_are_refused(option):
    with pytest.raises(UnsupportedError, match=f"^{option}: "):
        build().as_dgl(**{option: True})


@needs_dgl
def test_edge_prediction_works_without_exclusion():
    g = dgl.graph((EDGES[0], EDGES[1]))
    as_edges = dgl.dataloading.as_edge_prediction_sampler
    _, pairs, blocks = as_edges(build().as_dgl()).sample(g, torch.tensor([0, 1]))
    assert pairs.num_edges() == 2 and blocks[0].num_dst_nodes() == 3
    with pytest.raises(UnsupportedError, match=r"^exclude_eids: "):
        as_edges(build().as_dgl(), exclude="self").sample(g, torch.tensor([0]))


@needs_dgl
def test_heterogeneous_dgl_graph_is_refused():
    two = {("a", "r", "b"): (EDGES[0], EDGES[1]), ("b", "s", "a"): (EDGES[0], EDGES[1])}
    with pytest.raises(UnsupportedError, match=r"dgl\.to_homogeneous"):
        build().as_dgl().sample(dgl.heterograph(two), {"a": torch.tensor([0])})


@needs_dgl
def test_prefetched_edge_data_and_the_output_device():
    g = dgl.graph((EDGES[0], EDGES[1]))
    g.ndata["x"], g.edata["w"] = torch.arange(3.0), torch.tensor([0.5, 0.25])
    adapter = build().as_dgl(
        prefetch_node_feats=["x"], prefetch_labels=["x"], prefetch_edge_feats=["w"],
        output_device="cpu",
    )  # fmt: skip
    ((nodes, seeds, (block,)),) = dgl.dataloading.DataLoader(g, torch.tensor([0]), adapter)
    assert torch.equal(block.srcdata["x"], g.ndata["x"][nodes])
    assert torch.equal(block.dstdata["x"], g.ndata["x"][seeds])
    assert torch.equal(block.edata["w"], g.edata["w"][block.edata[dgl.EID]])


@needs_dgl
def test_batch_without_seeds():
    g = dgl.graph((EDGES[0], EDGES[1]))
    nodes, _, (block,) = build().as_dgl().sample(g, torch.empty(0, dtype=torch.int64))
    assert nodes.numel() == block.num_edges() == 0
    node_input = NodeSamplerInput(input_id=None, node=torch.empty(0, dtype=torch.int64))
    assert build().as_pyg().sample_from_nodes(node_input).node.numel() == 0


@pytest.mark.parametrize(
    "option", [{}, {"disjoint": True}, {"replace": True}, {"subgraph_type": "induced"}]
)
def test_neighbor_loader_is_refused(option):
    data = Data(edge_index=EDGES, num_nodes=3)
    loader = NeighborLoader(data, num_neighbors=[1], neighbor_sampler=build().as_pyg(), **option)
    with pytest.raises(UnsupportedError, match="do not reach this sampler; use NodeLoader"):
        next(iter(loader))
