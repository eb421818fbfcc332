import pytest
import torch
from partition_graphs import graph_of

from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.quality import Quality, imbalance


def test_cut_edges_and_what_parts_hold():
    graph = graph_of([[1, 1, 2], [0], [3, 2, 0], [], [4, 1]], train=[0, 2, 3])
    quality = Quality.of(graph, Partition.of_owners(torch.tensor([0, 0, 2, 2, 2]), 3))
    # 0 from 2, 2 from 0, 4 from 1
    assert (quality.cut, quality.num_edges) == (3, 9)
    assert quality.cut_share == pytest.approx(1 / 3)
    assert quality.nodes.tolist() == [2, 0, 3]
    assert quality.edges.tolist() == [4, 0, 5]
    assert quality.training.tolist() == [1, 0, 2]


def test_a_cut_is_counted_piece_by_piece(monkeypatch, small_graph):
    owners = torch.arange(small_graph.num_nodes) % 3
    made = Partition.of_owners(owners, 3)
    dst = torch.repeat_interleave(torch.arange(small_graph.num_nodes), small_graph.indptr.diff())
    cut = int((owners[dst] != owners[small_graph.indices.long()]).sum())
    assert Quality.of(small_graph, made).cut == cut
    monkeypatch.setattr("gnnbench.distributed.partition.quality.CHUNK_NODES", 7)
    assert Quality.of(small_graph, made).cut == cut


def test_imbalance():
    assert imbalance(torch.tensor([3, 1])) == 1.5
    assert imbalance(torch.tensor([2, 2])) == 1.0
    assert imbalance(torch.tensor([0, 0])) == 1.0
