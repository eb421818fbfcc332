"""Import datasets from the raw files that PyTorch Geometric downloads (nothing is unpickled)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import (
    ImportOptions,
    checked_edges,
    checked_rows,
    csr_rows,
    write_labels,
    write_listed,
    write_seeded_features,
    write_splits,
)
from gnnbench.datasets.importers.node_values import class_numbers, int64_ids
from gnnbench.datasets.importers.rawfile import NpzFile, reading
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array


def import_reddit(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Reddit (Hamilton et al., NeurIPS 2017) from ``reddit_data.npz`` and ``reddit_graph.npz``.

    The first has ``feature``, ``label`` and ``node_types`` (1 train, 2 validation, 3 test); the
    second is a COO matrix ``row``, ``col``, ``shape`` whose parallel entries are merged.
    """
    with NpzFile(folder / "reddit_data.npz") as npz:
        shape = npz.header("feature").shape
        if len(shape) != 2:
            raise DataError(f"feature in {npz.path} has shape {shape}; get it again")
        num_nodes = shape[0]
        with NpzFile(folder / "reddit_graph.npz") as graph:
            _check_shape(graph, "shape", num_nodes)
            row = graph.integers("row")
            col = graph.integers("col", len(row))
        edges = checked_edges(row, col, num_nodes, graph.path)
        notes = write_listed(out, edges, num_nodes, merge=True)
        del row, col, edges
        labels = class_numbers(npz.array("label"), num_nodes, npz.label("label"))
        num_classes, origin = write_labels(out, labels, num_nodes, options)
        kinds = npz.integers("node_types", num_nodes)
        train, val, test = (np.flatnonzero(kinds == kind) for kind in (1, 2, 3))
        write_splits(out, (train, val, test), num_nodes, options)
        out.write("features", "float32", shape, npz.rows("feature"))
    return {
        "num_classes": num_classes,
        "source": f"PyG raw files in {folder}",
        "loader": "pyg",
        "features": "source",
        "labels": origin,
        "split": "official",
        "notes": notes,
    }


def import_coauthor(path: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Coauthor graphs from ``ms_academic_*.npz``.

    Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018. CSR matrices ``adj_*`` and
    ``attr_*`` with ``labels``. As PyG does, self-loops are left out, both directions are stored
    once and every positive feature becomes 1. There is no official split: a seeded one is drawn.
    """
    with NpzFile(path) as npz:
        num_nodes = npz.header("labels").size
        labels = class_numbers(npz.array("labels"), num_nodes, npz.label("labels"))
        _check_shape(npz, "adj_shape", num_nodes)
        starts = npz.integers("adj_indptr", num_nodes + 1)
        columns = npz.integers("adj_indices")
        notes = write_listed(
            out,
            checked_rows(starts, columns, num_nodes, path),
            num_nodes,
            add_reverse=True,
            merge=True,
            drop_self_loops=True,
        )
        num_classes, origin = write_labels(out, labels, num_nodes, options)
        split = write_splits(out, None, num_nodes, options)
        width = int(_check_shape(npz, "attr_shape", num_nodes)[1])
        data = npz.array("attr_data")
        pieces = csr_rows(
            np.where(data > 0, 1, data),
            npz.integers("attr_indices"),
            npz.integers("attr_indptr", num_nodes + 1),
            width,
            path,
        )
        out.write("features", "float32", (num_nodes, width), pieces)
    return {
        "num_classes": num_classes,
        "source": f"PyG raw file {path}",
        "loader": "pyg",
        "features": "source, binary",
        "labels": origin,
        "split": split,
        "assumed": ["split"],
        "notes": notes,
    }


def import_graphsaint(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Flickr and Yelp (Zeng et al., "GraphSAINT", ICLR 2020), raw files of PyG.

    ``adj_full.npz`` (CSR), ``feats.npy``, ``class_map.json`` (a class a node, or a list of 0 and 1
    of which the first 1 is taken: gnnbench trains on one class a node), ``role.json`` (``tr``,
    ``va``, ``te``). Missing ``feats.npy``: seeded features.
    """
    with NpzFile(folder / "adj_full.npz") as npz:
        shape = npz.integers("shape", 2)
        num_nodes = int(shape[0])
        starts, columns = npz.integers("indptr", num_nodes + 1), npz.integers("indices")
        # Rows are sources, as PyG reads them.
        reversed_edges = checked_rows(starts, columns, num_nodes, npz.path)
        write_csc(out, lambda: ((src, dst) for dst, src in reversed_edges()), num_nodes)
    labels, several = _class_map(folder / "class_map.json", num_nodes)
    num_classes, origin = write_labels(out, labels, num_nodes, options)
    with reading(folder / "role.json"):
        roles = _object(folder / "role.json")
        parts = tuple(
            _ids(roles[k], f"'{k}' in {folder / 'role.json'}") for k in ("tr", "va", "te")
        )
    write_splits(out, (parts[0], parts[1], parts[2]), num_nodes, options)
    file, features = folder / "feats.npy", "source"
    if file.is_file():
        with reading(file):
            table = np.load(file, mmap_mode="r", allow_pickle=False)
        if table.ndim != 2 or len(table) != num_nodes:
            raise DataError(f"{file} has shape {table.shape} for {num_nodes} nodes; get it again")
        out.write("features", "float32", table.shape, row_chunks(table))
    else:
        features = write_seeded_features(out, num_nodes, options)
    return {
        "num_classes": num_classes,
        "source": f"PyG raw files in {folder}",
        "loader": "pyg",
        "features": features,
        "labels": f"{origin}, the first of several classes" if several else origin,
        "split": "official",
    }


def _class_map(path: Path, num_nodes: int) -> tuple[Array, bool]:
    """Class of every node, -1 where it has none; whether nodes have several."""
    labels, several = np.full(num_nodes, -1, np.int64), False
    with reading(path):
        for node, value in _object(path).items():
            if not (node.isascii() and node.isdigit() and int(node) < num_nodes):
                raise ValueError(f"node {node:.40} of {num_nodes}")
            if isinstance(value, list):
                several = True
                labels[int(node)] = value.index(1) if 1 in value else -1
            elif isinstance(value, int) and not isinstance(value, bool):
                labels[int(node)] = value
            else:
                raise ValueError(f"node {node} has the class {value!r:.40}")
    return class_numbers(labels, num_nodes, f"the classes in {path}"), several


def _object(path: Path) -> dict[str, object]:
    value = json.loads(path.read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__} instead of an object")
    return value


def _ids(values: object, origin: str) -> Array:
    if not isinstance(values, list):
        raise ValueError(f"{origin} is no list of nodes")
    ids = np.asarray(values) if values else np.empty(0, np.int64)
    if ids.ndim != 1:
        raise ValueError(f"{origin} has lists in a list of nodes")
    return int64_ids(ids, origin)


def _check_shape(npz: NpzFile, key: str, num_nodes: int) -> Array:
    shape = npz.integers(key, 2)
    if int(shape[0]) != num_nodes:
        raise DataError(
            f"'{key}' in {npz.path} is for {shape[0]} nodes, not {num_nodes}; get it again"
        )
    return shape
