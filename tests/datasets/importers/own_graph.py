"""A small directed graph in the forms of users' files, and helpers that import and check graphs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.store.reader import open_graph
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.kernels.dgl_import import import_dgl

# 0 -> 1, 0 -> 2, 1 -> 2, 3 -> 0, with weights 1 to 4.
SRC, DST = np.array([0, 0, 1, 3]), np.array([1, 2, 2, 0])
WEIGHTS = np.array([1.0, 2, 3, 4])
OUT = sp.coo_matrix((WEIGHTS, (SRC, DST)), shape=(4, 4))  # rows are sources
IN_INDPTR, IN_INDICES, IN_WEIGHTS = [0, 1, 2, 4, 4], [3, 0, 0, 1], [4, 1, 2, 3]
X = np.arange(8, dtype=np.float32).reshape(4, 2)
Y = np.array([0, 1, 1, 0])
TRAIN, VAL, TEST = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], bool)
MASKS = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}


def import_graph(path: Path, **options):
    return open_graph(import_source(path, "mine", **options))


def run_importer(importer, path: Path, folder: Path, options: ImportOptions):
    """Run an importer of raw files; return the graph that it stores below ``folder``."""
    final = folder / "store" / "tiny"
    final.parent.mkdir(exist_ok=True)
    with GraphWriter(final, {}) as out:
        out.finish(name="tiny", **importer(path, out, options))
    return open_graph(final)


def weighted_edges(graph) -> Counter[tuple[int, int, float]]:
    """(source, target, weight) of all edges; the weight is 1 in a graph without weights."""
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    weights = [1.0] * graph.num_edges if graph.weights is None else graph.weights.tolist()
    return Counter(zip(graph.indices.tolist(), dst.tolist(), weights, strict=True))


def dgl_or_skip() -> Any:
    try:
        return import_dgl()
    except Exception as error:
        pytest.skip(f"no dgl: {error}")


def assert_edges(graph, weights: bool = True) -> None:
    assert graph.indptr.tolist() == IN_INDPTR
    assert graph.indices.tolist() == IN_INDICES
    assert (None if graph.weights is None else graph.weights.tolist()) == (
        IN_WEIGHTS if weights else None
    )


def assert_node_data(graph) -> None:
    assert np.array_equal(graph.features, X)
    assert graph.labels.tolist() == Y.tolist()
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [part.tolist() for part in parts] == [[0, 3], [1], [2]]
    assert [graph.meta[k] for k in ("features", "labels", "split")] == ["source"] * 3
