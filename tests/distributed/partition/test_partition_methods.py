import ctypes
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from partition_graphs import communities, graph_of

from gnnbench.core.errors import MissingError, UsageError
from gnnbench.distributed.partition import metis
from gnnbench.distributed.partition.balance import share_evenly
from gnnbench.distributed.partition.methods import METHODS, partition
from gnnbench.distributed.partition.quality import Quality, imbalance

TWO_PAIRS = [[1, 1, 2], [0], [3, 2], [2]]  # parallel edges, and a self-loop of 2


def test_edges_between_two_nodes_count_both_ways_and_each():
    between = metis.symmetric_weights(graph_of(TWO_PAIRS)).toarray()
    assert between.tolist() == [[0, 3, 1, 0], [3, 0, 0, 0], [1, 0, 0, 2], [0, 0, 2, 0]]


def test_the_graph_is_left_as_it_is():
    graph = graph_of(TWO_PAIRS)
    metis.symmetric_weights(graph)
    assert graph.indices.tolist() == [1, 1, 2, 0, 3, 2, 2]


def test_contiguous_parts_are_ranges_of_ids():
    made = partition(graph_of([[]] * 7), 3, "contiguous")
    assert made.owners.tolist() == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_random_parts_are_even(parts):
    graph = communities([50, 51])
    quality = Quality.of(graph, partition(graph, parts, "random"))
    assert int(quality.nodes.max() - quality.nodes.min()) <= 1
    assert int(quality.training.max() - quality.training.min()) <= 1


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(method):
    if method.startswith("metis"):
        pytest.importorskip("pymetis")
    graph = communities([60, 60, 60])
    first, again, other = (partition(graph, 3, method, seed) for seed in (0, 0, 1))
    assert torch.equal(first.owners, again.owners)
    assert (first.method, first.seed) == (method, 0)
    if method == "random":
        assert not torch.equal(first.owners, other.owners)


def test_metis_cuts_few_edges_and_balances_nodes_and_training_nodes():
    pytest.importorskip("pymetis")
    graph = communities([100, 100, 100, 100])
    quality = Quality.of(graph, partition(graph, 4, "metis"))
    by_lot = Quality.of(graph, partition(graph, 4, "random"))
    assert quality.cut_share < 0.25 and by_lot.cut_share > 0.7
    assert imbalance(quality.nodes) <= 1.05
    assert int(quality.training.max() - quality.training.min()) <= 1


def test_metis_finds_groups_whose_training_nodes_are_even():
    pytest.importorskip("pymetis")
    graph = communities([40, 40], across=0, every=(1, 1))
    assert Quality.of(graph, partition(graph, 2, "metis")).cut == 0


def test_metis_balanced_balances_edges_too():
    """Two of four groups have a sixteenth of the edges of the others."""
    pytest.importorskip("pymetis")
    dense, sparse = (communities([100, 100], inside=i) for i in (32, 1))
    rows = [*_rows(dense), *[[u + 200 for u in row] for row in _rows(sparse)]]
    train = [*dense.train_idx.tolist(), *(sparse.train_idx + 200).tolist()]
    graph = graph_of(rows, train)
    quality = Quality.of(graph, partition(graph, 2, "metis-balanced"))
    for counts in (quality.nodes, quality.edges, quality.training):
        assert imbalance(counts) <= 1.05
    assert quality.cut_share < 0.4
    only_nodes = Quality.of(graph, partition(graph, 2, "metis"))
    assert imbalance(only_nodes.edges) > 1.3


def _rows(graph):
    ends = graph.indptr.tolist()
    return [graph.indices[a:b].tolist() for a, b in pairwise(ends)]


def test_metis_balanced_takes_graphs_without_training_nodes():
    pytest.importorskip("pymetis")
    graph = communities([50, 50], every=(1000, 1000))
    made = partition(replace(graph, train_idx=graph.train_idx[:0]), 2, "metis-balanced")
    assert imbalance(Quality.of(graph, made).edges) <= 1.05


def test_metis_without_a_c_interface(monkeypatch):
    pytest.importorskip("pymetis")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: object())
    with pytest.raises(MissingError, match="METIS cannot balance edges: this pymetis has no C int"):
        partition(graph_of(TWO_PAIRS), 2, "metis-balanced")


@pytest.mark.parametrize("method", ["metis", "metis-balanced"])
@pytest.mark.parametrize("rows", [[], [[]] * 5, [[0], [1]], [[1], [0]]])
def test_metis_takes_graphs_with_hardly_a_node_or_edge(rows, method):
    pytest.importorskip("pymetis")
    for parts in (1, 2, 4):
        made = partition(graph_of(rows), parts, method)
        assert made.parts == parts and made.num_nodes == len(rows)


def test_without_pymetis(monkeypatch):
    monkeypatch.setattr(metis, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="pymetis is not installed; run 'pip install pymetis"):
        partition(graph_of(TWO_PAIRS), 2, "metis-balanced")
    with pytest.raises(MissingError, match="pymetis is not installed; run 'pip install pymetis"):
        partition(graph_of(TWO_PAIRS), 2, "metis")
    assert partition(graph_of(TWO_PAIRS), 2, "contiguous").parts == 2


def test_a_wrong_method_and_no_parts():
    with pytest.raises(UsageError, match="did you mean 'metis'"):
        partition(graph_of(TWO_PAIRS), 2, "mets")
    with pytest.raises(UsageError, match="at least 1 part"):
        partition(graph_of(TWO_PAIRS), 0)


def test_training_nodes_go_where_they_have_most_edges():
    # 0 to 3 train and are of part 0; 3 is tied to 5, and 4 is tied to 0.
    links = {(0, 1): 5, (1, 2): 5, (2, 3): 1, (3, 5): 4, (0, 4): 3, (4, 5): 1, (2, 7): 3, (6, 7): 9}
    between = np.zeros((8, 8), np.int64)
    for (a, b), weight in links.items():
        between[a, b] = between[b, a] = weight
    owners, training = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.arange(8) < 4
    shared = share_evenly(sp.csr_matrix(between), owners, training, 2)
    # Round one: 3 goes, 4 comes back. Round two: 2 goes, for it has then most to 3 and 7; and of
    # 5, 6 and 7 it is 5 that loses least.
    assert shared.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert owners.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_no_other_nodes_to_give_back():
    between = sp.csr_matrix((5, 5), dtype=np.int64)
    shared = share_evenly(between, np.zeros(5, np.int64), np.ones(5, bool), 3)
    assert np.bincount(shared, minlength=3).tolist() == [2, 2, 1]
