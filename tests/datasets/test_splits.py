"""Random splits of graphs without validation or test nodes."""

import pickle
from dataclasses import replace

import pytest
import torch

from gnnbench.core.errors import DataError
from gnnbench.datasets.prepare import load_dataset
from gnnbench.kernels import rng
from gnnbench.kernels.reference import rng as reference

NONE = torch.arange(0)


def test_complete_split_is_kept(small_graph):
    assert small_graph.with_splits() is small_graph


@pytest.mark.parametrize("missing", ["val_idx", "test_idx"])
def test_labelled_nodes_are_split_by_the_counter_based_generator(small_graph, missing):
    labels = small_graph.labels.clone()
    labels[[0, 7, 399]] = -1
    graph = replace(small_graph, labels=labels, **{missing: NONE}).with_splits()
    parts = graph.train_idx, graph.val_idx, graph.test_idx
    assert [p.numel() for p in parts] == [238, 79, 80]
    assert all(bool((p[1:] > p[:-1]).all()) for p in parts)
    labelled = [v for v in range(400) if v not in (0, 7, 399)]
    assert sorted(torch.cat(parts).tolist()) == labelled
    order = reference.permutation(397, rng.key(0, 0, "split"))
    first = sorted(labelled[int(at)] for at in order[:238])
    assert graph.train_idx.tolist() == first


def test_pickled_graph_keeps_its_split():
    stored = load_dataset("rmat@8")
    graph = stored.with_splits()
    assert not stored.val_idx.numel() and graph.val_idx.numel()
    again = pickle.loads(pickle.dumps(graph))
    for name in ("train_idx", "val_idx", "test_idx"):
        assert torch.equal(getattr(again, name), getattr(graph, name))
    assert torch.equal(pickle.loads(pickle.dumps(stored)).train_idx, stored.train_idx)


def test_too_few_labelled_nodes_are_refused(small_graph):
    labels = torch.full_like(small_graph.labels, -1)
    labels[:4] = 0
    with pytest.raises(DataError, match="'small' has 4 labelled nodes, too few"):
        replace(small_graph, labels=labels, val_idx=NONE).with_splits()
