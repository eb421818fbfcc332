"""Store graphs that are objects in Python: PyG's ``Data`` and DGL's graphs.

::

    from gnnbench.datasets.importers.objects import from_pyg
    from_pyg(data, "my_graph")          # then: gnnbench run breakdown --datasets my_graph

Neither library is needed beyond the object itself, and nothing is pickled or unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gnnbench.core.errors import UsageError
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.formats import DglGraph, dgl_arrays
from gnnbench.datasets.importers.imported import SYMMETRIC, check_options, store_object
from gnnbench.datasets.importers.named import MemoryArrays, NodeArrays
from gnnbench.datasets.importers.nodes import SPLIT
from gnnbench.datasets.importers.npz import import_arrays
from gnnbench.datasets.importers.tensors import Key, as_array, is_sparse, named_tensors
from gnnbench.datasets.importers.torchfile import data_values
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter

__all__ = ["from_dgl", "from_pyg"]


def from_pyg(
    data: object,
    name: str,
    path: str | Path | None = None,
    *,
    split: Mapping[str, object] | None = None,
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
    least 0) is kept unless the graph is made symmetric; other tensors are not, and a note in
    ``meta.json`` names them.

    Without ``path`` the graph gets its ``name`` in the store and is used by it; a folder at
    ``path`` is used by its path. Raises ``UsageError`` for an object of another kind or a name that
    is taken (``replace``: a graph of that name is replaced), ``DataError`` for a malformed graph.
    """
    given = getattr(data, "edge_index", None) is not None or is_sparse(getattr(data, "adj_t", None))
    if not given or hasattr(data, "edge_types"):
        raise UsageError(
            f"a {type(data).__name__} without one edge_index cannot be stored; give a homogeneous "
            "torch_geometric.data.Data (see to_homogeneous)"
        )
    values: dict[object, object] = {}
    if hasattr(data, "to_dict"):
        values.update(data_values(data, Path("PyG Data")))
    else:
        values.update(vars(data))
    options = _options(name, seed, feature_dim, num_classes, train_fraction, symmetric, split)
    return _store("PyG Data", values, options, path, replace, root)


def from_dgl(
    g: DglGraph,
    name: str,
    path: str | Path | None = None,
    *,
    features: str = "",
    labels: str = "",
    weights: str = "",
    split: Mapping[str, object] | None = None,
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
    ``features``, ``x``, ``feat``, ``feature`` and of ``labels``, ``y``, ``label``. ``weights``
    names a key of ``g.edata`` with the edges' weights, by default ``weights``, ``edge_weight`` or
    ``weight``. Everything else is as for :func:`from_pyg`.
    """
    arrays = dgl_arrays(g, features, labels, weights)
    options = _options(name, seed, feature_dim, num_classes, train_fraction, symmetric, split)
    return _store("DGL graph", arrays, options, path, replace, root)


def _options(
    name: str,
    seed: int,
    feature_dim: int,
    num_classes: int,
    train_fraction: float,
    symmetric: bool,
    split: Mapping[str, object] | None,
) -> ImportOptions:
    check_options(train_fraction, feature_dim, num_classes)
    return ImportOptions(
        name, seed, feature_dim, num_classes, SYMMETRIC if symmetric else None,
        train_fraction=train_fraction, given=NodeArrays(split=_given(split)),
    )  # fmt: skip


def _given(split: Mapping[str, object] | None) -> MemoryArrays | None:
    """Index arrays of a split; a part that is not given is empty."""
    if split is None:
        return None
    if not isinstance(split, Mapping):
        raise UsageError(
            f"a split is a dict of train, val (or valid) and test, not a {type(split).__name__}"
        )
    if unknown := set(split) - {name for names in SPLIT for name in names}:
        wrong = min(map(repr, unknown))
        raise UsageError(f"a split has train, val (or valid) and test, not {wrong}")
    parts = {names[0]: next((split[n] for n in names if n in split), None) for names in SPLIT}
    empty = np.empty(0, np.int64)
    arrays = {
        k: empty if p is None else as_array(p, f"'{k}' of the split").reshape(-1)
        for k, p in parts.items()
    }
    return MemoryArrays(Path("split"), arrays)


def _store(
    kind: str,
    values: Mapping[Key, object],
    options: ImportOptions,
    path: str | Path | None,
    replace: bool,
    root: str | Path | None,
) -> Path:
    def load(out: GraphWriter) -> NewGraph:
        about = import_arrays(named_tensors(Path(kind), values), out, options)
        source = f"{kind} '{options.name}'"
        return {**about, "source": source, "loader": kind.split()[0].lower(), "seed": options.seed}

    return store_object(load, options.name, path, replace, root)
