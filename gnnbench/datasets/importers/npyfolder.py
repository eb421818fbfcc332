"""Import IGB and MAG240M: folders of ``.npy`` files, mapped, never unpickled.

Both keep papers and their citations in ``processed``; only these are used, as one homogeneous
graph (IGB: Khatua et al., KDD 2023; MAG240M: Hu et al., "OGB-LSC", NeurIPS 2021).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import (
    ImportOptions,
    write_labels,
    write_listed_file,
    write_splits,
)
from gnnbench.datasets.importers.node_values import class_numbers
from gnnbench.datasets.importers.rawfile import reading
from gnnbench.datasets.importers.room import check_room
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array

_YEARS = (2018, 2019)  # MAG240M trains on papers up to the first, validates on the second


def import_igb(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """The homogeneous IGB graphs, with 19 classes.

    ``paper__cites__paper/edge_index.npy`` ``[num_edges, 2]`` (source, target),
    ``paper/node_feat.npy``, ``paper/node_label_19.npy``; the first 60 % of the nodes train, the
    next 20 % validate, as in IGB's own loader.
    """
    papers = folder / "processed"
    features = _features(papers)
    num_nodes = len(features)
    edge_file = papers / "paper__cites__paper" / "edge_index.npy"
    src, dst = _edge_ids(edge_file, 1)
    if not out.done("features"):
        check_room(out.final.parent, num_nodes, len(src), features.shape[1], folder)
    notes = write_listed_file(out, src, dst, num_nodes, edge_file, options)
    labels = _labels(papers / "paper" / "node_label_19.npy", num_nodes)
    num_classes, origin = write_labels(out, labels, num_nodes, options)
    train, val = int(num_nodes * 0.6), int(num_nodes * 0.2)
    ids = np.arange(num_nodes)
    parts = (ids[:train], ids[train : train + val], ids[train + val :])
    write_splits(out, parts, num_nodes, options)
    out.write("features", "float32", features.shape, row_chunks(features))
    return {**_about(folder, "igb", num_classes, origin, "official, by position"), "notes": notes}


def import_mag240m(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """The papers of MAG240M and their citations.

    ``paper___cites___paper/edge_index.npy`` ``[2, num_edges]``, ``paper/node_feat.npy`` (float16),
    ``paper/node_label.npy`` (NaN: no arXiv paper, or hidden), ``paper/node_year.npy``. Split by
    year; the labels of the test papers are hidden, so the test set is empty.
    """
    papers = folder / "processed"
    features = _features(papers)
    num_nodes = len(features)
    edge_file = papers / "paper___cites___paper" / "edge_index.npy"
    src, dst = _edge_ids(edge_file, 0)
    if not out.done("features"):
        check_room(out.final.parent, num_nodes, len(src), features.shape[1], folder)
    notes = write_listed_file(out, src, dst, num_nodes, edge_file, options)
    labels = _labels(papers / "paper" / "node_label.npy", num_nodes)
    years = _npy(papers / "paper" / "node_year.npy", 1)
    if years.dtype.kind not in "iuf":
        raise DataError(f"the years in {folder} have type {years.dtype}; get it again")
    if len(years) != num_nodes:
        raise DataError(f"{folder} has {len(years)} years for {num_nodes} papers; get it again")
    num_classes, origin = write_labels(out, labels, num_nodes, options)
    known = labels >= 0
    train = np.flatnonzero(known & (years <= _YEARS[0]))
    val = np.flatnonzero(known & (years == _YEARS[1]))
    write_splits(out, (train, val, np.empty(0, np.int64)), num_nodes, options)
    out.write("features", "float32", features.shape, row_chunks(features))
    split = "official, by year; no test labels"
    return {**_about(folder, "mag240m", num_classes, origin, split), "notes": notes}


def _about(folder: Path, loader: str, classes: int, labels: str, split: str) -> NewGraph:
    return {
        "num_classes": classes,
        "source": f"raw files in {folder}",
        "loader": loader,
        "features": "source",
        "labels": labels,
        "split": split,
    }


def _edge_ids(path: Path, axis: int) -> tuple[Array, Array]:
    """Sources and destinations of a file of edges; ``axis`` is that of the two ends."""
    edges = _npy(path, 2)
    if edges.shape[axis] != 2:
        wanted = "[edges, 2]" if axis else "[2, edges]"
        raise DataError(f"{path} has shape {edges.shape}, not {wanted}; get it again")
    if edges.dtype.kind not in "iu":
        raise DataError(f"{path} has type {edges.dtype}, integers are expected; get it again")
    return (edges[:, 0], edges[:, 1]) if axis else (edges[0], edges[1])


def _npy(path: Path, dimensions: int) -> Array:
    with reading(path):
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != dimensions:
        raise DataError(f"{path} has shape {array.shape}; get it again")
    return array


def _features(papers: Path) -> Array:
    path = papers / "paper" / "node_feat.npy"
    features = _npy(path, 2)
    if min(features.shape) < 1 or features.dtype.kind not in "fiu":
        raise DataError(
            f"{path} has type {features.dtype} and shape {features.shape}, numbers [nodes, width] "
            "are expected; get it again"
        )
    return features


def _labels(path: Path, num_nodes: int) -> Array:
    return class_numbers(np.asarray(_npy(path, 1)), num_nodes, str(path))
