"""Open files of graphs, features, labels and splits as arrays by name.

``.npz`` and ``.npy`` of numpy, ``.pt`` of torch (tensors, dicts of them, PyG's ``Data``), graph
files of DGL, text. Only weights in torch's sense and PyG's ``Data`` are unpickled.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers.edge_arrays import WEIGHTS
from gnnbench.datasets.importers.named import MemoryArrays, NamedArrays
from gnnbench.datasets.importers.nodes import FEATURES, LABELS, SPLIT
from gnnbench.datasets.importers.nodetext import node_text
from gnnbench.datasets.importers.rawfile import NpzFile, reading
from gnnbench.datasets.importers.scipyfile import is_scipy, scipy_matrix
from gnnbench.datasets.importers.tensors import named_tensors
from gnnbench.datasets.importers.textfile import Skipped
from gnnbench.datasets.importers.torchfile import TORCH, graph_file, node_file
from gnnbench.schema.arrays import Array

_SPLITS = {f"{name}_mask" for part in SPLIT for name in part}
_PICKLED = (".pkl", ".pickle")
_DGL = struct.pack("<Q", 0xDD2E4FF046B4A13F)  # the first bytes of what dgl.save_graphs writes


def graph_arrays(path: Path) -> NamedArrays | None:
    """The arrays of a graph's file; None for a text file.

    Raises ``UsageError`` for pickled objects, ``MissingError`` if a package that can read the file
    is not installed, ``DataError`` for a damaged file.
    """
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return NpzFile(path)
    if suffix == ".npy":
        return MemoryArrays(path, {"edge_index": _npy(path)})
    if suffix in TORCH:
        return graph_file(path)
    if suffix in _PICKLED:
        raise UsageError(
            f"{path} holds pickled objects, which gnnbench never loads; load it in Python and "
            "call gnnbench.datasets.importers.objects.from_pyg or from_dgl"
        )
    with reading(path), path.open("rb") as file:
        is_dgl = file.read(len(_DGL)) == _DGL
    return named_tensors(path, _dgl_file(path)) if is_dgl else None


def _npy(path: Path) -> Array:
    with reading(path):
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError:
            raise
        except Exception as error:  # a damaged header ends in any of Python's parse errors
            raise ValueError(str(error)) from None
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays; name it .npz")
        return np.asarray(array)


_PROBE = """
import sys
from gnnbench.kernels.dgl_import import require_dgl
require_dgl().load_graphs(sys.argv[1])
"""


class DglGraph(Protocol):
    """The part of a DGL graph that is read."""

    ndata: Mapping[str, object]
    edata: Mapping[str, object]

    def formats(self, formats: list[str]) -> DglGraph:
        """The graph with additional sparse formats."""

    def edges(self) -> tuple[object, object]:
        """Sources and destinations."""

    def num_nodes(self) -> int:
        """Number of nodes."""


def _dgl_file(path: Path) -> dict[str, object]:
    from gnnbench.kernels.dgl_import import require_dgl

    dgl = require_dgl()
    _check_dgl_reader_survives(path)
    with reading(path):
        try:
            graphs, labels = dgl.load_graphs(str(path))
            if len(graphs) == 1:
                arrays = dgl_arrays(graphs[0])
                return arrays | {f"graph label {key}": value for key, value in labels.items()}
        except (dgl.DGLError, BufferError, AttributeError, AssertionError) as error:
            raise ValueError(str(error).strip()) from None
    raise DataError(f"{path} holds {len(graphs)} graphs; save a single graph")


def _check_dgl_reader_survives(path: Path) -> None:
    """Raise ``DataError`` for a damaged file on which DGL's reader aborts its process."""
    probe = subprocess.run([sys.executable, "-c", _PROBE, path], capture_output=True, check=False)
    if probe.returncode < 0:
        name = signal.Signals(-probe.returncode).name
        raise DataError(f"{path} is truncated or damaged (DGL ends with {name}); get it again")


def dgl_arrays(
    g: DglGraph, features: str = "", labels: str = "", weights: str = ""
) -> dict[str, object]:
    """Edges, features, labels, split and weights of a homogeneous DGL graph, as tensors by name.

    Parallel edges are kept. Other data gets names ``ndata KEY`` and ``edata KEY``, which importers
    do not read.

    ``features``, ``labels`` and ``weights`` are keys to use in place of the usual ones. Raises
    ``UsageError`` for another kind of graph or a missing key.
    """
    if not getattr(g, "is_homogeneous", False) or getattr(g, "is_block", False):
        raise UsageError(
            f"this {type(g).__name__} is not a homogeneous DGL graph; see dgl.to_homogeneous"
        )
    # A graph with CSC alone has no edge order without the other formats.
    src, dst = g.formats(["coo", "csr", "csc"]).edges()
    arrays: dict[str, object] = {"src": src, "dst": dst, "num_nodes": int(g.num_nodes())}
    chosen = set()
    for kind, table, requested, names in (
        ("ndata", g.ndata, features, FEATURES),
        ("ndata", g.ndata, labels, LABELS),
        ("edata", g.edata, weights, WEIGHTS),
    ):
        if requested and requested not in table:
            raise UsageError(f"the graph has no {kind}['{requested}']; it has {', '.join(table)}")
        if key := requested or next((name for name in names if name in table), ""):
            arrays[names[0]] = table[key]
            chosen.add((kind, key))
    for kind, table in (("ndata", g.ndata), ("edata", g.edata)):
        for key in table:
            if (kind, key) not in chosen:
                is_split = kind == "ndata" and key in _SPLITS
                arrays[key if is_split else f"{kind} {key}"] = table[key]
    return arrays


def node_arrays(path: Path, role: str) -> NamedArrays:
    """A file of ``features``, ``labels`` or a ``split``, under the keys that importers read.

    Features: ``.npy``, ``.pt``, an ``.npz`` (one array, one of a usual name, or a CSR matrix of
    scipy) or text, a row a node. Labels: the same, or a number a line. Split: an ``.npz`` or
    ``.pt`` with ``train``, ``val`` (or ``valid``) and ``test``, as ids or masks, or text with one
    of these words (or ``none``) a line. Raises ``UsageError`` where there is no such file,
    ``DataError`` for one that is not understood.
    """
    if not path.is_file():
        width = " (--feature-dim is the width of seeded ones)" * (role == "features")
        wrong = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise UsageError(f"{wrong}; give a file with {role}{width}")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        arrays: NamedArrays = NpzFile(path)
    elif suffix == ".npy":
        arrays = MemoryArrays(path, {role: _npy(path)})
    elif suffix in TORCH:
        arrays = node_file(path, role)
    else:
        skipped = Skipped()
        values = node_text(path, role, skipped)
        arrays = MemoryArrays(path, {role: values}, skipped.notes(path))
    if role == "split":
        return _split(arrays)
    usual = FEATURES if role == "features" else LABELS
    if arrays.first(usual) or (role == "features" and "feat_data" in arrays):
        return arrays
    if role == "features" and is_scipy(arrays):
        return _scipy_features(arrays)
    if len(arrays.keys) != 1:
        present = ", ".join(sorted(arrays.keys)) or "nothing"
        raise DataError(f"{path} has no array '{role}', but {present}; name it {role}")
    (only,) = arrays.keys
    return MemoryArrays(path, {role: arrays.array(only)}, arrays.notes)


def _scipy_features(arrays: NamedArrays) -> NamedArrays:
    """Features of a sparse matrix that scipy saved; duplicates are summed, as scipy does."""
    matrix, shape = scipy_matrix(arrays)
    values = np.ones(len(matrix.indices), np.float32) if matrix.values is None else matrix.values
    parts = {"feat_data": values, "feat_indices": matrix.indices, "feat_indptr": matrix.indptr}
    return MemoryArrays(arrays.path, {**parts, "feat_dim": np.asarray(shape[1])}, matrix.notes)


def _split(arrays: NamedArrays) -> NamedArrays:
    names = [name for part in SPLIT for name in part]
    if any(name in arrays or f"{name}_idx" in arrays or f"{name}_mask" in arrays for name in names):
        return arrays
    words: Array = np.empty(0)
    if len(arrays.keys) == 1:
        words = arrays.array(*arrays.keys)
    if words.dtype.kind != "U" or words.ndim != 1:
        raise DataError(
            f"{arrays.path} has no array 'train'; a split has train, val and test, as ids or as "
            "masks, or is a text with one of these words a line"
        )
    low = np.char.lower(words)
    known = np.isin(low, [*names, "none"])
    if not known.all():
        bad = int(np.argmin(known))
        raise DataError(
            f"entry {bad + 1} of {arrays.path} is '{words[bad]}'; train, val, test or none is right"
        )
    return MemoryArrays(arrays.path, {part[0]: np.isin(low, part) for part in SPLIT}, arrays.notes)
