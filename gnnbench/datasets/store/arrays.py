"""Store a graph from arrays in memory."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Unpack

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import index_dtype
from gnnbench.datasets.store.disk import Progress, graph_lock
from gnnbench.datasets.store.schema import Provenance
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array


def write_graph(
    path: str | Path,
    *,
    name: str,
    indptr: Array,
    indices: Array,
    features: Array | Iterable[Array],
    labels: Array,
    train_idx: Array,
    val_idx: Array,
    test_idx: Array,
    num_classes: int,
    feature_dim: int | None = None,
    weights: Array | None = None,
    progress: Progress | None = None,
    **about: Unpack[Provenance],
) -> Path:
    """Store a graph from arrays (shapes as in ``Graph``) and return its folder.

    ``features`` may be an iterable of row chunks, which needs ``feature_dim``. Split indices are
    sorted; ``weights`` are in the order of ``indices``. Raises ``DataError`` for a malformed graph
    and ``UsageError`` if the folder cannot be written; ``path`` does not exist then.
    """
    final = Path(path).absolute()
    if isinstance(features, np.ndarray):
        if features.ndim != 2:
            raise DataError(f"{name}: features must have two dimensions, not {features.ndim}")
        feature_dim = features.shape[1]
        features = layout.row_chunks(features)
    if feature_dim is None:
        raise DataError(f"{name}: feature_dim must be given if features come in chunks")
    num_nodes = len(indptr) - 1
    ids = "int64" if indices.dtype == np.int64 else index_dtype(num_nodes)
    fresh = {"arrays": secrets.token_hex(8)}  # never resume: the arrays may be others
    with graph_lock(final), GraphWriter(final, fresh, progress) as out:
        out.write("indptr", "int64", (len(indptr),), layout.row_chunks(indptr))
        out.write("indices", ids, (len(indices),), layout.row_chunks(indices))
        out.write("labels", "int64", (num_nodes,), layout.row_chunks(labels))
        for split, idx in (("train_idx", train_idx), ("val_idx", val_idx), ("test_idx", test_idx)):
            out.write(split, "int64", (len(idx),), [np.sort(idx)])
        out.write("features", "float32", (num_nodes, feature_dim), features)
        if weights is not None:
            out.write("weights", "float32", (len(indices),), layout.row_chunks(weights))
        return out.finish(name=name, num_classes=num_classes, **about)
