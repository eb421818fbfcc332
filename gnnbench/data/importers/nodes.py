"""What a source says of its nodes: features, labels and split, by the names they go by."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnnbench.data.importers.common import (
    ImportOptions,
    csr_rows,
    write_labels,
    write_seeded_features,
    write_splits,
)
from gnnbench.data.importers.named import NamedArrays, NodeArrays
from gnnbench.data.store.writer import GraphWriter
from gnnbench.errors import DataError

FEATURES = ("features", "x", "feat", "feature")
LABELS = ("labels", "y", "label")
SPLIT = (("train",), ("val", "valid"), ("test",))
_SPARSE = ("feat_data", "feat_indices", "feat_indptr")
Split = tuple[np.ndarray, np.ndarray, np.ndarray]


class NodeSources:
    """Features, labels and split: ``given`` apart, else among the arrays that hold the graph.

    What neither has is drawn. ``used`` has the keys of ``graph`` that were read, ``notes`` what is
    to be said of them.
    """

    def __init__(self, graph: NamedArrays | None, given: NodeArrays) -> None:
        self._graph = graph
        self.features = given.features or graph
        self.labels = given.labels or graph
        self.split = given.split or graph
        self.used: set[str] = set()
        self.notes: list[str] = []

    def _use(self, arrays: NamedArrays, *keys: str) -> None:
        if arrays is self._graph:
            self.used.update(keys)

    @property
    def num_nodes(self) -> int:
        """Number of nodes by the rows of the features or by the labels; 0 where neither says."""
        if self.features is not None and (key := self.features.first(FEATURES)):
            return (self.features.header(key).shape or (0,))[0]
        if self.features is not None and "feat_indptr" in self.features:
            return self.features.header("feat_indptr").size - 1
        if self.labels is not None and (key := self.labels.first(LABELS)):
            return (self.labels.header(key).shape or (0,))[0]
        return 0

    def write(self, out: GraphWriter, num_nodes: int, options: ImportOptions) -> dict[str, Any]:
        """Write labels, split and features; returns their origins and the number of classes.

        What is missing is drawn from ``options.seed``. Raises ``DataError`` for what does not fit
        ``num_nodes``.
        """
        labels = self._labels(num_nodes)
        classes, label_origin = write_labels(out, labels, num_nodes, options)
        split = write_splits(out, self._split(num_nodes), num_nodes, options)
        features = self._features(out, num_nodes, options)
        return {
            "num_classes": classes,
            "features": features,
            "labels": label_origin,
            "split": split,
        }

    def _labels(self, num_nodes: int) -> np.ndarray | None:
        arrays = self.labels
        key = arrays.first(LABELS) if arrays is not None else ""
        if arrays is None or not key:
            return None
        self._use(arrays, key)
        return class_numbers(arrays.array(key), num_nodes, arrays.told(key))

    def _split(self, num_nodes: int) -> Split | None:
        arrays = self.split
        if arrays is None:
            return None
        keys = [
            arrays.first(tuple(f"{name}{tail}" for tail in ("_idx", "_mask", "") for name in names))
            for names in SPLIT
        ]
        if not keys[0]:
            return None
        if keys[0].endswith("_idx") and not all(keys):
            raise arrays.missing(f"{SPLIT[keys.index('')][0]}_idx")
        self._use(arrays, *keys)
        parts = [self._part(arrays, key, num_nodes) for key in keys]
        return parts[0], parts[1], parts[2]

    def _part(self, arrays: NamedArrays, key: str, num_nodes: int) -> np.ndarray:
        if not key:
            return np.empty(0, np.int64)
        if not key.endswith("_mask") and arrays.header(key).dtype.kind != "b":
            return arrays.integers(key)
        flags = arrays.array(key)
        if flags.ndim == 2:
            flags = flags[:, 0]
            if not any("several splits" in note for note in self.notes):
                self.notes.append("the first of several splits")
        if flags.shape != (num_nodes,) or flags.dtype.kind not in "biu":
            raise DataError(
                f"{arrays.told(key)}, a split mask, has type {flags.dtype} and shape "
                f"{flags.shape}, booleans [{num_nodes}] are expected; correct it"
            )
        return np.flatnonzero(flags)

    def _features(self, out: GraphWriter, num_nodes: int, options: ImportOptions) -> str:
        arrays = self.features
        if arrays is None:
            return write_seeded_features(out, num_nodes, options)
        key = arrays.first(FEATURES)
        default = "dense" if key else "csr" if "feat_data" in arrays else "none"
        kind = arrays.scalar("feat_kind", default)
        if kind == "none":
            return write_seeded_features(out, num_nodes, options)
        if kind == "dense":
            key = key or FEATURES[0]
            header = arrays.header(key)
            self._use(arrays, key)
            if header.shape[:1] != (num_nodes,):
                raise DataError(
                    f"{key} in {arrays.path} has shape {header.shape}, [{num_nodes}, width] is "
                    "expected; correct the file"
                )
            out.write("features", "float32", header.shape, arrays.rows(key))
        elif kind == "csr":
            self._use(arrays, *_SPARSE)
            width = int(arrays.scalar("feat_dim", 0))
            columns = arrays.integers("feat_indices")
            starts = arrays.integers("feat_indptr", num_nodes + 1)
            width = width or int(columns.max(initial=-1)) + 1
            data = arrays.array("feat_data")
            if data.dtype.kind not in "fiub":
                raise DataError(f"feat_data in {arrays.path} has type {data.dtype}; correct it")
            pieces = csr_rows(data, columns, starts, width, arrays.path)
            out.write("features", "float32", (num_nodes, width), pieces)
        else:
            raise DataError(
                f"feat_kind in {arrays.path} is '{kind}', dense, csr or none is expected; "
                "correct the file"
            )
        return "source"


def class_numbers(values: np.ndarray, num_nodes: int, what: str) -> np.ndarray:
    """Labels as int64 ``[num_nodes]``, NaN as -1. Raises ``DataError`` for other than classes."""
    y = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if y.ndim != 1:
        raise DataError(
            f"{what} has shape {y.shape}, one class a node is expected; choose one of several "
            "(multi-label graphs are not trained on)"
        )
    if len(y) != num_nodes:
        raise DataError(
            f"{what} has {len(y)} entries, {num_nodes} are expected; correct the file or the graph"
        )
    if y.dtype.kind == "f":
        y = np.where(np.isnan(y), -1, y)
        if (y != np.floor(y)).any():
            raise DataError(f"{what} has values that are not class numbers; correct them")
    elif y.dtype.kind not in "iub":
        raise DataError(f"{what} has type {y.dtype}, integers are expected; correct it")
    return y.astype(np.int64)
