"""Import OGB node-property datasets from the raw files that OGB ships (nothing is unpickled).

Layout (Hu et al., "Open Graph Benchmark", NeurIPS 2020): a dataset folder with ``raw`` and
``split/<kind>``. ``edge_index[0]`` holds sources, ``edge_index[1]`` destinations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import (
    ImportOptions,
    write_labels,
    write_listed_file,
    write_seeded_features,
    write_splits,
)
from gnnbench.datasets.importers.node_values import class_numbers
from gnnbench.datasets.importers.rawfile import ArrayHeader, NpzFile, csv_column, csv_pieces
from gnnbench.datasets.importers.room import check_room
from gnnbench.datasets.store.csc import index_dtype
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array


def import_ogb_csv(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Datasets as gzipped CSV (ogbn-arxiv, ogbn-products).

    ``raw/edge.csv.gz``, ``raw/num-node-list.csv.gz``, ``raw/node-feat.csv.gz`` (seeded features
    where it is missing) and ``raw/node-label.csv.gz``.
    """
    raw = folder / "raw"
    num_nodes = _single(raw / "num-node-list.csv.gz")
    check_room(out.final.parent, num_nodes, 0, 0, folder)
    edge_file = raw / "edge.csv.gz"
    pieces = csv_pieces(edge_file, "int64")
    out.write("scratch_edges", "int64", (None, 2), _two_columns(pieces, edge_file))
    edges = out.read("scratch_edges")
    notes = write_listed_file(out, edges[:, 0], edges[:, 1], num_nodes, edge_file, options)
    label_file, feature_file = raw / "node-label.csv.gz", raw / "node-feat.csv.gz"
    labels = class_numbers(csv_column(label_file, "float64"), num_nodes, str(label_file))
    about = _nodes(folder, out, labels, num_nodes, options)
    about["notes"] = notes
    if feature_file.is_file():
        rows = csv_pieces(feature_file, "float32", 1 << 15)
        first = next(rows, np.empty((0, 0), np.float32))
        if not first.size:
            raise DataError(f"{feature_file} is empty; get it again")
        if not out.done("features"):
            check_room(out.final.parent, num_nodes, 0, first.shape[1], folder)
        pieces = itertools.chain([first], rows)
        out.write("features", "float32", (num_nodes, first.shape[1]), pieces)
    else:
        about["features"] = write_seeded_features(out, num_nodes, options)
    return about


def import_ogb_binary(folder: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Datasets as ``.npz`` (ogbn-papers100M).

    ``raw/data.npz`` with ``edge_index`` ``[2, num_edges]``, ``num_nodes_list``, ``node_feat``, and
    ``raw/node-label.npz`` with ``node_label`` (NaN: unlabelled). Read in pieces.
    """
    raw = folder / "raw"
    with NpzFile(raw / "data.npz") as npz:
        num_nodes = npz.count("num_nodes_list") or 0
        if num_nodes < 1:
            raise DataError(f"{npz.path} does not say how many nodes there are; get it again")
        check_room(out.final.parent, num_nodes, npz.header("edge_index").size // 2, 0, npz.path)
        header = npz.header("edge_index")
        if len(header.shape) != 2 or header.shape[0] != 2 or header.dtype.kind not in "iu":
            raise DataError(f"edge_index in {npz.path} must be integers [2, edges]; get it again")
        src, dst = _edge_columns(npz, out, header, index_dtype(num_nodes))
        notes = write_listed_file(out, src, dst, num_nodes, npz.path, options)
        with NpzFile(raw / "node-label.npz") as labels_npz:
            values = labels_npz.array("node_label")
            labels = class_numbers(values, num_nodes, labels_npz.label("node_label"))
        about = _nodes(folder, out, labels, num_nodes, options)
        about["notes"] = notes
        if "node_feat" in npz:
            shape = npz.header("node_feat").shape
            if len(shape) != 2 or shape[0] != num_nodes:
                raise DataError(f"node_feat in {npz.path} has shape {shape}; get it again")
            out.write("features", "float32", shape, npz.rows("node_feat"))
        else:
            about["features"] = write_seeded_features(out, num_nodes, options)
    return about


def _edge_columns(
    npz: NpzFile, out: GraphWriter, header: ArrayHeader, ids: str
) -> tuple[Array, Array]:
    """Sources and destinations of ``edge_index`` on disk, in whichever order it is stored."""
    num_edges = header.shape[1]
    if header.fortran:
        pairs = (p.reshape(-1, 2) for p in npz.flat("edge_index", multiple=2))
        out.write("scratch_edges", ids, (num_edges, 2), pairs)
        edges = out.read("scratch_edges")
        return edges[:, 0], edges[:, 1]
    for row, name in enumerate(("scratch_src", "scratch_dst")):
        pieces = npz.flat("edge_index", row * num_edges, (row + 1) * num_edges)
        out.write(name, ids, (num_edges,), pieces)
    return out.read("scratch_src"), out.read("scratch_dst")


def _nodes(
    folder: Path,
    out: GraphWriter,
    labels: Array,
    num_nodes: int,
    options: ImportOptions,
) -> NewGraph:
    """Write labels and splits."""
    num_classes, label_origin = write_labels(out, labels, num_nodes, options)
    kinds = sorted(p for p in (folder / "split").glob("*") if (p / "train.csv.gz").is_file())
    if not kinds:
        raise DataError(f"{folder} has no split/<kind>/train.csv.gz; get the dataset again")
    files = [kinds[0] / f"{part}.csv.gz" for part in ("train", "valid", "test")]
    train, val, test = (csv_column(file, "int64") for file in files)
    write_splits(out, (train, val, test), num_nodes, options)
    return {
        "num_classes": num_classes,
        "source": f"OGB raw files in {folder}",
        "loader": "ogb",
        "features": "source",
        "labels": label_origin,
        "split": f"official, {kinds[0].name}",
    }


def _single(path: Path) -> int:
    values = csv_column(path, "int64")
    if len(values) != 1 or values[0] < 1:
        raise DataError(f"{path} must hold one number of nodes; get the dataset again")
    return int(values[0])


def _two_columns(pieces: Iterator[Array], path: Path) -> Iterator[Array]:
    for piece in pieces:
        if piece.shape[1] != 2:
            raise DataError(f"{path} has {piece.shape[1]} columns instead of 2; get it again")
        yield piece
