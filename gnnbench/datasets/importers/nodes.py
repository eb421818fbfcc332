"""Features, labels and split of a source, under their usual names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import (
    ImportOptions,
    csr_rows,
    write_labels,
    write_seeded_features,
    write_splits,
)
from gnnbench.datasets.importers.named import NamedArrays, NodeArrays
from gnnbench.datasets.importers.node_values import class_numbers, looks_like_mask, split_mask
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array

FEATURES = ("features", "x", "feat", "feature")
LABELS = ("labels", "y", "label")
SPLIT = (("train",), ("val", "valid"), ("test",))
_TAILS = ("_idx", "_mask", "")
_SPARSE = ("feat_data", "feat_indices", "feat_indptr")
Split = tuple[Array, Array, Array]


class NodeSources:
    """Features, labels and split: ``given`` apart, else among the arrays that hold the graph.

    Missing data is seeded. ``used`` has the keys of ``graph`` that were read, ``notes`` remarks on
    them.
    """

    def __init__(self, graph: NamedArrays | None, given: NodeArrays) -> None:
        self._graph = graph
        self.features = given.features or graph
        self.labels = given.labels or graph
        self.split = given.split or graph
        self.used: set[str] = set()
        self.notes: list[str] = []
        self._read: dict[int, set[str]] = defaultdict(set)  # keys, by the arrays that have them

    def _use(self, arrays: NamedArrays, *keys: str) -> None:
        self._read[id(arrays)].update(keys)
        if arrays is self._graph:
            self.used.update(keys)

    def _check_given(self) -> None:
        """Raise ``DataError`` for a given split without training nodes."""
        if self.split is not None and self.split is not self._graph:
            names = tuple(f"{name}{tail}" for name in SPLIT[0] for tail in _TAILS)
            if not self.split.first(names):
                present = ", ".join(sorted(self.split.keys)) or "nothing"
                raise DataError(
                    f"{self.split.path} has no training nodes ('train'), but {present}; add them"
                )

    @property
    def num_nodes(self) -> int:
        """Number of nodes by the rows of the features or by the labels; 0 where neither says."""
        return self._rows()[0]

    def _rows(self) -> tuple[int, str, int]:
        """Number of nodes, the file that says so, and its number of columns or 0."""
        for arrays, keys in ((self.features, FEATURES), (self.labels, LABELS)):
            if arrays is None:
                continue
            if arrays is self.features and "feat_indptr" in arrays and not arrays.first(FEATURES):
                return arrays.header("feat_indptr").size - 1, str(arrays.path), 0
            if key := arrays.first(keys):
                shape = arrays.header(key).shape
                return next(iter(shape), 0), str(arrays.path), next(iter(shape[1:]), 0)
        return 0, "", 0

    def why_missing(self, node: int) -> str:
        """Say which file has no row for a node."""
        rows, path, columns = self._rows()
        turned = f"; it looks transposed ({rows} x {columns})" * (columns > node)
        return f"'{path}' has {rows} rows, none for it{turned}; it needs one for each node"

    def write(self, out: GraphWriter, num_nodes: int, options: ImportOptions) -> NewGraph:
        """Write labels, split and features; returns their origins and the number of classes.

        What is missing is drawn from ``options.seed``. Raises ``DataError`` for what does not fit
        ``num_nodes``.
        """
        self._check_given()
        labels = self._labels(num_nodes)
        classes, label_origin = write_labels(out, labels, num_nodes, options)
        if labels is not None and label_origin == "seeded":
            self.notes.append("no node has a label: random ones take the place of the source's")
        split = write_splits(out, self._split(num_nodes), num_nodes, options)
        features = self._features(out, num_nodes, options)
        given = {id(a): a for a in (self.features, self.labels, self.split) if a is not None}
        for arrays in given.values():
            if arrays is not self._graph:  # whose notes the importer has
                self.notes += arrays.notes
                if left := arrays.left(self._read[id(arrays)]):
                    self.notes.append(f"not kept of {arrays.path}: {', '.join(left)}")
        return {
            "num_classes": classes,
            "features": features,
            "labels": label_origin,
            "split": split,
        }

    def _labels(self, num_nodes: int) -> Array | None:
        arrays = self.labels
        key = arrays.first(LABELS) if arrays is not None else ""
        if arrays is None or not key:
            return None
        self._use(arrays, key)
        return class_numbers(arrays.array(key), num_nodes, arrays.label(key))

    def _split(self, num_nodes: int) -> Split | None:
        arrays = self.split
        if arrays is None:
            return None
        keys = [
            arrays.first(tuple(f"{name}{tail}" for tail in _TAILS for name in names))
            for names in SPLIT
        ]
        if not keys[0]:
            return None
        if keys[0].endswith("_idx") and not all(keys):
            raise arrays.missing(f"{SPLIT[keys.index('')][0]}_idx")
        self._use(arrays, *keys)
        parts = [self._part(arrays, key, num_nodes) for key in keys]
        return parts[0], parts[1], parts[2]

    def _part(self, arrays: NamedArrays, key: str, num_nodes: int) -> Array:
        if not key:
            return np.empty(0, np.int64)
        flags = arrays.array(key)
        named = key.endswith("_mask") or flags.dtype.kind == "b"
        if not named and (key.endswith("_idx") or not looks_like_mask(flags, num_nodes)):
            return self._ids(arrays, key, num_nodes)
        if flags.ndim == 2 and flags.shape[1]:
            flags = flags[:, 0]
            if not any("several splits" in note for note in self.notes):
                self.notes.append("the first of several splits")
        return split_mask(flags, num_nodes, arrays.label(key))

    def _ids(self, arrays: NamedArrays, key: str, num_nodes: int) -> Array:
        """The nodes that a part of the split lists; raises ``DataError`` for a wrong one."""
        if arrays.header(key).shape == (0,):  # numpy's empty list is one of floats
            return np.empty(0, np.int64)
        ids = arrays.integers(key)
        wrong = (ids < 0) | (ids >= num_nodes)
        if wrong.any():
            raise DataError(
                f"{arrays.label(key)} has node {int(ids[wrong][0])}, outside 0..{num_nodes - 1}; "
                "correct it"
            )
        ordered = np.sort(ids)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if twice.size:
            raise DataError(
                f"{arrays.label(key)} lists node {int(twice[0])} twice; remove one, or name the "
                f"array {key.removesuffix('_idx')}_mask if it is a mask"
            )
        return ids

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
            rows = _finite(arrays.rows(key), arrays.label(key))
            out.write("features", "float32", header.shape, rows)
        elif kind == "csr":
            self._use(arrays, *_SPARSE)
            width = arrays.count("feat_dim") or 0
            columns = arrays.integers("feat_indices")
            starts = arrays.integers("feat_indptr", num_nodes + 1)
            width = width or int(columns.max(initial=-1)) + 1
            if width < 1:
                raise DataError(f"the sparse features of {arrays.path} have no column; correct it")
            data = arrays.array("feat_data")
            if data.dtype.kind not in "fiub":
                raise DataError(f"feat_data in {arrays.path} has type {data.dtype}; correct it")
            pieces = csr_rows(data, columns, starts, width, arrays.path)
            origin = arrays.label("feat_data")
            out.write("features", "float32", (num_nodes, width), _finite(pieces, origin))
        else:
            raise DataError(
                f"feat_kind in {arrays.path} is '{kind}', dense, csr or none is expected; "
                "correct the file"
            )
        return "source"


def _finite(pieces: Iterator[Array], origin: str) -> Iterator[Array]:
    """The rows. Raises ``DataError``, which names ``origin``, for NaN and infinity."""
    row = 0
    for piece in pieces:
        # A sum is finite unless a value is not (or the sum overflows): the slow look is rare.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = piece.dtype.kind == "f" and not np.isfinite(piece.sum(dtype=np.float64))
        if suspicious and not (finite := np.isfinite(piece)).all():
            node, column = np.argwhere(~finite)[0]
            raise DataError(
                f"{origin} has {piece[node, column]} for node {row + node}, in column {column}; "
                "features are finite numbers: correct it"
            )
        yield piece
        row += len(piece)
