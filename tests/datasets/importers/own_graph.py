"""A small directed graph in the forms of users' files, and checks of its import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.store.reader import open_graph

# 0 -> 1, 0 -> 2, 1 -> 2, 3 -> 0, with weights 1 to 4.
SRC, DST = np.array([0, 0, 1, 3]), np.array([1, 2, 2, 0])
WEIGHTS = np.array([1.0, 2, 3, 4])
OUT = sp.coo_matrix((WEIGHTS, (SRC, DST)), shape=(4, 4))  # rows are sources
IN_INDPTR, IN_INDICES, IN_WEIGHTS = [0, 1, 2, 4, 4], [3, 0, 0, 1], [4, 1, 2, 3]
X = np.arange(8, dtype=np.float32).reshape(4, 2)
Y = np.array([0, 1, 1, 0])
TRAIN, VAL, TEST = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], bool)
MASKS = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}


def graph_of(path: Path, **options):
    return open_graph(import_source(path, "mine", **options))


def right(graph, weights: bool = True) -> None:
    assert graph.indptr.tolist() == IN_INDPTR
    assert graph.indices.tolist() == IN_INDICES
    assert (None if graph.weights is None else graph.weights.tolist()) == (
        IN_WEIGHTS if weights else None
    )


def same_nodes(graph) -> None:
    assert np.array_equal(graph.features, X)
    assert graph.labels.tolist() == Y.tolist()
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [part.tolist() for part in parts] == [[0, 3], [1], [2]]
    assert [graph.meta[k] for k in ("features", "labels", "split")] == ["source"] * 3
