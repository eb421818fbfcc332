"""The graph store: open, write and verify prepared graphs. Nothing here unpickles anything."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnnbench.data import layout
from gnnbench.data.csc import index_dtype
from gnnbench.data.validate import validate
from gnnbench.data.writer import GraphWriter, Progress, graph_lock
from gnnbench.errors import DataError

if TYPE_CHECKING:
    from gnnbench.data.graph import Graph


@dataclass(frozen=True)
class VerifyReport:
    """Outcome of recomputing every checksum of a prepared graph."""

    path: Path
    files: int
    bytes: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every byte is as it was written."""
        return not self.problems

    @property
    def message(self) -> str:
        """One sentence for the user."""
        if self.ok:
            return f"{self.path}: {self.files} files, {self.bytes} bytes, all checksums agree"
        return (
            f"{self.path} is damaged: {'; '.join(self.problems)}; "
            "delete the folder and prepare the dataset again"
        )


def open_graph(path: str | Path) -> Graph:
    """Map a prepared graph read-only (private pages).

    Sizes, types and everything that is an index are checked, so that no later damage makes native
    code leave an array; checksums and features are not (``verify``). Raises ``MissingError`` where
    there is no graph and ``DataError`` where it is damaged.
    """
    from gnnbench.data.graph import Graph

    folder = Path(path)
    meta = layout.read_meta(folder)
    layout.check_sizes(folder, meta)
    mapped = {
        array: layout.map_array(folder, array, entry["dtype"], tuple(entry["shape"]))
        for array, entry in meta["arrays"].items()
    }
    again = "delete the folder and prepare the dataset again"
    classes = int(meta["num_classes"])
    validate(f"{folder} is damaged", mapped, classes, contents_of_features=False, advice=again)
    return Graph.mapped(folder, meta)


def verify(path: str | Path, progress: Progress | None = None) -> VerifyReport:
    """Recompute every checksum and name each file that changed.

    Raises ``MissingError`` where there is no graph; damage is reported, not raised.
    """
    folder = Path(path)
    try:
        meta = layout.read_meta(folder)
    except DataError:
        return VerifyReport(folder, 1, 0, (f"{layout.META} changed or cannot be read",))
    problems, size = [], (folder / layout.META).stat().st_size
    for array, entry in meta["arrays"].items():
        file = layout.file_of(folder, array)
        if not file.is_file():
            problems.append(f"{file.name} is missing")
            continue
        have = file.stat().st_size
        size += have
        if have != entry["bytes"]:
            problems.append(f"{file.name} is {have} bytes long instead of {entry['bytes']}")
        elif layout.sha256_file(file) != entry["sha256"]:
            problems.append(f"{file.name} changed")
        if progress is not None:
            progress(f"verify {array}", have, have)
    return VerifyReport(folder, 1 + len(meta["arrays"]), size, tuple(problems))


def write_graph(
    path: str | Path,
    *,
    name: str,
    indptr: np.ndarray,
    indices: np.ndarray,
    features: np.ndarray | Iterable[np.ndarray],
    labels: np.ndarray,
    train_idx: np.ndarray,
    val_idx: np.ndarray,
    test_idx: np.ndarray,
    num_classes: int,
    feature_dim: int | None = None,
    weights: np.ndarray | None = None,
    progress: Progress | None = None,
    **about: Any,
) -> Path:
    """Store a graph from arrays (shapes as in ``Graph``); returns its folder.

    ``features`` may be an iterable of row pieces, with ``feature_dim`` given. Split indices are
    sorted here; ``weights`` are in the order of ``indices``. Raises ``DataError`` for a malformed
    graph, ``UsageError`` where the folder cannot be written; nothing is left under ``path`` then.
    """
    final = Path(path).absolute()
    if isinstance(features, np.ndarray):
        if features.ndim != 2:
            raise DataError(f"{name}: features must have two dimensions, not {features.ndim}")
        feature_dim = features.shape[1]
        features = layout.row_chunks(features)
    if feature_dim is None:
        raise DataError(f"{name}: feature_dim must be given where features come in pieces")
    num_nodes = len(indptr) - 1
    ids = "int64" if indices.dtype == np.int64 else index_dtype(num_nodes)
    fresh = {"arrays": secrets.token_hex(8)}  # what an interrupted call left may be another graph
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
