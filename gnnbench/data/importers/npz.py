"""Import a graph from one ``.npz``.

Keys: ``indptr`` and ``indices`` (CSC of in-neighbours, integers); features as ``features``
``[num_nodes, width]`` or as CSR in ``feat_data``, ``feat_indices``, ``feat_indptr`` with
``feat_dim`` (``feat_kind`` says ``dense``, ``csr`` or ``none``); ``labels`` (-1: unlabelled);
``train_idx``, ``val_idx``, ``test_idx``; ``weights`` of the edges, in the order of ``indices``;
``num_nodes``; texts ``source``, ``license``, ``split_origin``, ``note``. Everything but the
topology may be missing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gnnbench.data.importers.common import (
    ImportOptions,
    csr_rows,
    write_labels,
    write_seeded_features,
    write_splits,
)
from gnnbench.data.importers.rawfile import NpzFile
from gnnbench.data.store.csc import index_dtype
from gnnbench.data.store.writer import GraphWriter
from gnnbench.errors import DataError


def import_npz(path: Path, out: GraphWriter, options: ImportOptions) -> dict[str, Any]:
    """Write the arrays of ``path``; returns what ``GraphWriter.finish`` wants to know.

    Features and labels that are missing are drawn from ``options.seed``, and the result says so.
    Raises ``DataError`` for a file that is damaged or malformed.
    """
    with NpzFile(path) as npz:
        indptr = npz.integers("indptr")
        num_nodes = len(indptr) - 1
        stated = npz.scalar("num_nodes")
        if num_nodes < 1 or (stated is not None and stated != num_nodes):
            raise DataError(
                f"indptr in {path} has {len(indptr)} entries for {stated or 'at least 1'} nodes; "
                "correct the file"
            )
        out.write("indptr", "int64", (num_nodes + 1,), [indptr])
        indices = npz.integers("indices")
        wide = "int64" if indices.dtype.itemsize == 8 else index_dtype(num_nodes)
        out.write("indices", wide, (len(indices),), [indices])
        if "weights" in npz:
            shape = npz.header("weights").shape
            if shape != indices.shape:
                raise DataError(
                    f"weights in {path} has shape {shape}, [{len(indices)}] is expected; "
                    "correct the file"
                )
            out.write("weights", "float32", shape, npz.flat("weights"))
        del indptr, indices

        labels = npz.integers("labels", num_nodes) if "labels" in npz else None
        stated_classes = int(npz.scalar("num_classes", 0))
        num_classes, label_origin = write_labels(
            out, labels, num_nodes, _with_classes(options, stated_classes)
        )
        keys = ("train_idx", "val_idx", "test_idx")
        splits = tuple(npz.integers(key) for key in keys) if "train_idx" in npz else None
        split_origin = write_splits(out, splits, num_nodes, options)  # type: ignore[arg-type]
        feature_origin = _features(npz, out, num_nodes, options)
        notes = [str(npz.scalar("note", "")).strip()]
        return {
            "num_classes": num_classes,
            "source": str(npz.scalar("source", "")) or str(path),
            "licence": str(npz.scalar("license", "")),
            "loader": "npz",
            "features": feature_origin,
            "labels": label_origin,
            "split": str(npz.scalar("split_origin", "")) or split_origin,
            "notes": [note for note in notes if note],
        }


def _with_classes(options: ImportOptions, stated: int) -> ImportOptions:
    return replace(options, num_classes=stated or options.num_classes)


def _features(npz: NpzFile, out: GraphWriter, num_nodes: int, options: ImportOptions) -> str:
    default = "dense" if "features" in npz else "csr" if "feat_data" in npz else "none"
    kind = npz.scalar("feat_kind", default)
    if kind == "none":
        return write_seeded_features(out, num_nodes, options)
    if kind == "dense":
        header = npz.header("features")
        if header.shape[:1] != (num_nodes,):
            raise DataError(
                f"features in {npz.path} has shape {header.shape}, [{num_nodes}, width] is "
                "expected; correct the file"
            )
        out.write("features", "float32", header.shape, npz.rows("features"))
    elif kind == "csr":
        width = int(npz.scalar("feat_dim", 0))
        columns, starts = npz.integers("feat_indices"), npz.integers("feat_indptr", num_nodes + 1)
        width = width or int(columns.max(initial=-1)) + 1
        data = npz.array("feat_data")
        if data.dtype.kind not in "fiu":
            raise DataError(f"feat_data in {npz.path} has type {data.dtype}; correct the file")
        pieces = csr_rows(data, columns, starts, width, npz.path)
        out.write("features", "float32", (num_nodes, width), pieces)
    else:
        raise DataError(
            f"feat_kind in {npz.path} is '{kind}', dense, csr or none is expected; correct the file"
        )
    return "source"
