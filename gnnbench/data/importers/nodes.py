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
from gnnbench.data.importers.node_values import class_numbers, looks_like_mask, split_mask
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
        given = {id(a): a for a in (self.features, self.labels, self.split) if a is not None}
        for arrays in given.values():
            if arrays is not self._graph:  # whose notes the importer has
                self.notes += arrays.notes
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
        flags = arrays.array(key)
        named = key.endswith("_mask") or flags.dtype.kind == "b"
        if not named and (key.endswith("_idx") or not looks_like_mask(flags, num_nodes)):
            return arrays.integers(key)
        if flags.ndim == 2 and flags.shape[1]:
            flags = flags[:, 0]
            if not any("several splits" in note for note in self.notes):
                self.notes.append("the first of several splits")
        return split_mask(flags, num_nodes, arrays.told(key))

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
            width = arrays.count("feat_dim") or 0
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
