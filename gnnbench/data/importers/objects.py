"""Store graphs that are objects in Python: PyG's ``Data`` and DGL's graphs.

::

    from gnnbench.data.importers.objects import from_pyg
    from_pyg(data, "my_graph")          # then: gnnbench run breakdown --datasets my_graph

Neither library is needed beyond the object itself, and nothing is pickled or unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.data.importers.common import (
    ImportOptions,
    checked_edges,
    write_labels,
    write_seeded_features,
    write_splits,
)
from gnnbench.data.importers.imported import check_options, store_object
from gnnbench.data.store.layout import row_chunks
from gnnbench.data.store.topology import write_csc
from gnnbench.data.store.writer import GraphWriter
from gnnbench.errors import DataError, UsageError

__all__ = ["from_dgl", "from_pyg"]

_SPLITS = (("train",), ("val", "valid"), ("test",))
Split = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class _Parts:
    """What an object holds, as numpy arrays; None where it has none."""

    kind: str
    src: np.ndarray
    dst: np.ndarray
    num_nodes: int
    features: np.ndarray | None
    labels: np.ndarray | None
    split: Split | None
    weights: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Wishes:
    name: str
    symmetric: bool
    options: ImportOptions


def from_pyg(
    data: Any,
    name: str,
    path: str | Path | None = None,
    *,
    split: Mapping[str, Any] | None = None,
    symmetric: bool = False,
    train_fraction: float = 0.6,
    feature_dim: int = 0,
    num_classes: int = 0,
    seed: int = 0,
    replace: bool = False,
    root: str | Path | None = None,
) -> Path:
    """Store a homogeneous ``torch_geometric.data.Data``; returns the graph's folder.

    Reads ``edge_index`` int64 ``[2, num_edges]`` (sources, targets), ``x`` ``[num_nodes, width]``,
    ``y`` (one class a node, -1 or NaN: unlabelled) and ``train_mask``, ``val_mask``, ``test_mask``
    (of several columns the first is taken). ``split`` gives index arrays instead: ``train``,
    ``val`` or ``valid``, ``test``, as OGB's ``get_idx_split`` does. What is missing is seeded as by
    ``gnnbench data import``, and ``meta.json`` says so. ``edge_weight`` ``[num_edges]`` (finite, at
    least 0) is kept unless the graph is made symmetric; ``edge_attr`` is not.

    Without ``path`` the graph gets its ``name`` in the store and is used by it; a folder at
    ``path`` is used by its path. Raises ``UsageError`` for an object of another kind or a name that
    is taken (``replace``: a graph of that name is replaced), ``DataError`` for a malformed graph.
    """
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None or hasattr(data, "edge_types"):
        raise UsageError(
            f"a {type(data).__name__} without one edge_index cannot be stored; give a homogeneous "
            "torch_geometric.data.Data (see to_homogeneous, and adj_t.coo() for a SparseTensor)"
        )
    edges = _array(edge_index)
    if edges.ndim != 2 or len(edges) != 2:
        raise DataError(f"'{name}': edge_index has shape {edges.shape}, [2, num_edges] is expected")
    num_nodes = int(data.num_nodes or 0)
    masks = [getattr(data, f"{names[0]}_mask", None) for names in _SPLITS]
    parts = _Parts(
        "PyG Data",
        edges[0],
        edges[1],
        num_nodes,
        _features(name, getattr(data, "x", None)),
        _labels(name, getattr(data, "y", None)),
        None,
    )
    parts.split = _split(name, masks, split, num_nodes, parts.notes)
    parts.weights = _weights(name, getattr(data, "edge_weight", None), parts, symmetric)
    if getattr(data, "edge_attr", None) is not None:
        parts.notes.append("not kept: edge_attr (no system reads it)")
    options = _options(name, seed, feature_dim, num_classes, train_fraction)
    return _store(parts, _Wishes(name, symmetric, options), path, replace, root)


def from_dgl(
    g: Any,
    name: str,
    path: str | Path | None = None,
    *,
    features: str = "",
    labels: str = "",
    weights: str = "",
    split: Mapping[str, Any] | None = None,
    symmetric: bool = False,
    train_fraction: float = 0.6,
    feature_dim: int = 0,
    num_classes: int = 0,
    seed: int = 0,
    replace: bool = False,
    root: str | Path | None = None,
) -> Path:
    """Store a homogeneous DGL graph; returns the graph's folder.

    ``features`` and ``labels`` name keys of ``g.ndata``; by default the first that is there of
    ``feat``, ``feature``, ``features``, ``x`` and of ``label``, ``labels``, ``y``. ``weights``
    names a key of ``g.edata`` with the edges' weights; by default none is kept. Everything else is
    as for :func:`from_pyg`.
    """
    if not getattr(g, "is_homogeneous", False) or getattr(g, "is_block", False):
        raise UsageError(
            f"this {type(g).__name__} is not a homogeneous DGL graph; see dgl.to_homogeneous"
        )
    src, dst = (_array(ids) for ids in g.edges())
    num_nodes = int(g.num_nodes())
    table = g.ndata

    def column(asked: str, usual: tuple[str, ...]) -> Any:
        if asked and asked not in table:
            raise UsageError(f"the graph has no ndata['{asked}']; it has {', '.join(table)}")
        return table[asked] if asked else next((table[k] for k in usual if k in table), None)

    masks = [column("", tuple(f"{k}_mask" for k in names)) for names in _SPLITS]
    parts = _Parts(
        "DGL graph",
        src,
        dst,
        num_nodes,
        _features(name, column(features, ("feat", "feature", "features", "x"))),
        _labels(name, column(labels, ("label", "labels", "y"))),
        None,
    )
    parts.split = _split(name, masks, split, num_nodes, parts.notes)
    if weights:
        if weights not in g.edata:
            raise UsageError(f"the graph has no edata['{weights}']; it has {', '.join(g.edata)}")
        parts.weights = _weights(name, g.edata[weights], parts, symmetric)
    left = [key for key in g.edata if not key.startswith("_") and key != weights]
    if left:
        parts.notes.append(f"not kept: edata {', '.join(left)} (weights= names the one to keep)")
    options = _options(name, seed, feature_dim, num_classes, train_fraction)
    return _store(parts, _Wishes(name, symmetric, options), path, replace, root)


def _options(
    name: str, seed: int, feature_dim: int, num_classes: int, train_fraction: float
) -> ImportOptions:
    check_options(train_fraction, feature_dim, num_classes)
    return ImportOptions(name, seed, feature_dim, num_classes, train_fraction=train_fraction)


def _store(
    parts: _Parts, wishes: _Wishes, path: str | Path | None, replace: bool, root: str | Path | None
) -> Path:
    n, options = parts.num_nodes, wishes.options

    def load(out: GraphWriter) -> dict[str, Any]:
        if n < 1:
            raise DataError("the graph has no nodes; give one that has")
        for ids in (parts.src, parts.dst):
            if ids.dtype.kind not in "iu":
                raise DataError(
                    f"node ids have type {ids.dtype}, integers are expected; correct it"
                )
        edges = checked_edges(parts.src, parts.dst, n, Path(parts.kind))
        write_csc(out, edges, n, add_reverse=wishes.symmetric, merge=wishes.symmetric)
        if parts.weights is not None:
            # The CSC has its rows sorted; among parallel edges any order is one.
            order = np.lexsort((parts.src, parts.dst))
            out.write("weights", "float32", order.shape, row_chunks(parts.weights[order]))
        if parts.labels is not None and parts.labels.shape != (n,):
            raise DataError(f"y has shape {parts.labels.shape}, [{n}] is expected; correct it")
        classes, labels = write_labels(out, parts.labels, n, options)
        split = write_splits(out, parts.split, n, options)
        if parts.features is None:
            features = write_seeded_features(out, n, options)
        else:
            shape = (n, parts.features.shape[1])
            out.write("features", "float32", shape, row_chunks(parts.features))
            features = "source"
        return {
            "num_classes": classes,
            "source": f"{parts.kind} '{wishes.name}'",
            "loader": parts.kind.split()[0].lower(),
            "features": features,
            "labels": labels,
            "split": split,
            "notes": parts.notes,
            "seed": options.seed,
            "symmetric": True if wishes.symmetric else None,
        }

    return store_object(load, wishes.name, path, replace, root)


def _array(values: Any) -> np.ndarray:
    """A tensor of any device and layout, or anything else, as a numpy array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.layout) != "torch.strided":
            values = values.to_dense()
        if values.dtype.is_floating_point and values.element_size() < 4:
            values = values.float()  # numpy has no bfloat16
        values = values.numpy()
    return np.asarray(values)


def _features(name: str, values: Any) -> np.ndarray | None:
    if values is None:
        return None
    table = _array(values)
    if table.ndim != 2 or table.shape[1] < 1 or table.dtype.kind not in "fiub":
        raise DataError(
            f"'{name}': features have type {table.dtype} and shape {table.shape}, numbers "
            "[num_nodes, width] are expected; correct them"
        )
    return table.astype(np.float32) if table.dtype.kind == "b" else table


def _labels(name: str, values: Any) -> np.ndarray | None:
    if values is None:
        return None
    y = _array(values)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise DataError(
            f"'{name}': labels have shape {y.shape}, one class a node is expected; choose one of "
            "several (multi-label graphs are not trained on)"
        )
    if y.dtype.kind == "f":
        y = np.where(np.isnan(y), -1, y)
        if (y != np.floor(y)).any():
            raise DataError(f"'{name}': labels are not class numbers; correct them")
    elif y.dtype.kind not in "iub":
        raise DataError(f"'{name}': labels have type {y.dtype}, integers are expected; correct it")
    return y.astype(np.int64)


def _weights(name: str, values: Any, parts: _Parts, symmetric: bool) -> np.ndarray | None:
    if values is None:
        return None
    if symmetric:
        parts.notes.append("edge weights not kept: merged edges have none of their own")
        return None
    weights = _array(values)
    if weights.shape != parts.src.shape or weights.dtype.kind not in "fiu":
        raise DataError(
            f"'{name}': edge weights have type {weights.dtype} and shape {weights.shape}, numbers "
            f"[{len(parts.src)}] are expected; correct them or leave them out"
        )
    return weights


def _split(
    name: str,
    masks: list[Any],
    given: Mapping[str, Any] | None,
    num_nodes: int,
    notes: list[str],
) -> Split | None:
    """Index arrays of a given split or of masks; None where there is no training part."""
    if given is not None:
        unknown = set(given) - {key for names in _SPLITS for key in names}
        if unknown:
            raise UsageError(f"a split has train, val (or valid) and test, not {min(unknown)!r}")
        parts = [next((given[k] for k in names if k in given), None) for names in _SPLITS]
        found = [np.empty(0, np.int64) if p is None else _array(p).reshape(-1) for p in parts]
        return found[0], found[1], found[2]
    if masks[0] is None:
        return None
    found = []
    for mask in masks:
        flags = np.zeros(num_nodes, bool) if mask is None else _array(mask)
        if flags.ndim == 2:
            flags = flags[:, 0]
            if not notes:
                notes.append("the first of several splits")
        if flags.shape != (num_nodes,) or flags.dtype.kind not in "biu":
            raise DataError(
                f"'{name}': a split mask has type {flags.dtype} and shape {flags.shape}, booleans "
                f"[{num_nodes}] are expected; correct it"
            )
        found.append(np.flatnonzero(flags))
    return found[0], found[1], found[2]
