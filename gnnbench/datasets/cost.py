"""Estimate the seconds, memory and disk that preparing a dataset takes.

Memory is fitted to measurements: mostly up to 30 % too high, for ``.npz`` files up to 25 % too low.
Seconds are rough: one core of a 2020s server and a common disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench.core.cgroups import usable_cores
from gnnbench.datasets.generators import rmat
from gnnbench.datasets.generators.parallel import generator_device, gpu_bytes
from gnnbench.datasets.generators.seeded import DEFAULT_WIDTH
from gnnbench.datasets.importers.nodes import FEATURES
from gnnbench.datasets.importers.rawfile import NpzFile
from gnnbench.datasets.names import DatasetRef
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import EDGES_PER_PASS

DISK_BYTES_PER_SECOND = 250e6  # generated, hashed, written and checked
TWIN_EDGES_PER_SECOND = 2e6  # per core
RMAT_EDGES_PER_SECOND = 7e6  # per core
GPU_EDGES_PER_SECOND = 100e6  # a guess
SORTED_EDGES_PER_SECOND = 5e6  # numpy's sort, one core
RAW_BYTES_PER_SECOND = 40e6  # unpacked and parsed
_PIECES_BYTES = 96 << 20  # chunks between generator and disk
_SEEDED_BYTES = 128 << 20  # the same for seeded features and labels
_IDS = (
    "indices",
    "edge_index",
    "src",
    "source",
    "row",
)  # one id per edge, last axis
_KEY_BYTES = 20  # per edge that is sorted and merged


@dataclass(frozen=True)
class Shape:
    """Counts of a graph that is not prepared yet, or upper bounds of them.

    ``edges`` are directed. ``raw_bytes`` is the size of the source's files, ``drawn`` whether
    features are random, ``weighted`` whether edges have weights.
    """

    nodes: int
    edges: int
    width: int
    train: int
    id_bytes: int = 4
    raw_bytes: int = 0
    drawn: bool = True
    weighted: bool = False

    def topology_bytes(self) -> int:
        """Size of ``indptr`` and ``indices``."""
        return 8 * (self.nodes + 1) + self.id_bytes * self.edges

    def stored_bytes(self) -> int:
        """Size of all files; random features may have none (``GNNBENCH_FEATURES``)."""
        unwritten = self.drawn and os.environ.get("GNNBENCH_FEATURES") == "memory"
        rows = 0 if unwritten else 4 * self.nodes * self.width
        weights = 4 * self.edges if self.weighted else 0
        return self.topology_bytes() + weights + rows + 2 * 8 * self.nodes  # labels and splits


@dataclass(frozen=True)
class Cost:
    """Seconds, peak memory, and disk space including temporary files."""

    seconds: float
    memory_bytes: int
    disk_bytes: int

    def __add__(self, other: Cost) -> Cost:
        """Cost of one preparation after another."""
        return Cost(
            self.seconds + other.seconds,
            max(self.memory_bytes, other.memory_bytes),
            self.disk_bytes + other.disk_bytes,
        )


def shape(ref: DatasetRef, source: Path | None) -> Shape | None:
    """Counts of a dataset from its name, its manifest or the header of its file (``source``).

    None for a real dataset without its source. Raises ``DataError`` for an unreadable file.
    """
    base = _base_shape(ref, source)
    if base is None or ref.origin is None:
        return base
    doubled = ref.sym and not _symmetric(ref)
    edges = 2 * base.edges if doubled else base.edges
    return replace(base, edges=edges, raw_bytes=0, weighted=ref.weights)


def _symmetric(ref: DatasetRef) -> bool:
    return ref.manifest is not None and ref.manifest.symmetric


def _base_shape(ref: DatasetRef, source: Path | None) -> Shape | None:
    if ref.kind == "rmat":
        nodes, edges = rmat.counts(ref.size.scale, ref.size.degree)
        return Shape(nodes, edges, ref.size.dims, nodes)
    if ref.kind == "rows":
        return Shape(ref.shape[0], 0, ref.shape[1], ref.shape[0])
    if ref.kind == "twin" and ref.manifest is not None:
        made = ref.manifest.twin_recipe().scaled(ref.scale)
        ids = 8 if made.id_dtype == "int64" else 4
        return Shape(made.num_nodes, made.num_edges, made.feature_dim, int(made.train), ids)
    if ref.kind == "store" and ref.path is not None:
        meta = layout.read_meta(ref.path)
        counts = (meta["num_nodes"], meta["num_edges"], meta["feature_dim"], meta["train"])
        return Shape(*counts, drawn=False)
    if source is None:
        return None
    if (manifest := ref.manifest) is not None:
        counts = (manifest.num_nodes, manifest.num_edges, manifest.feature_dim, manifest.train_size)
        return Shape(*counts, raw_bytes=_size(source), drawn=False)
    return _npz_shape(source)


def _npz_shape(path: Path) -> Shape | None:
    """Counts from the headers of its arrays; None if these do not tell the number of nodes."""
    with NpzFile(path) as npz:
        rows = next((npz.header(key).shape for key in FEATURES if key in npz), ())
        nodes = (npz.count("num_nodes") or 0) or (rows[0] if rows else 0)
        if "indptr" in npz:
            nodes = max(npz.header("indptr").size - 1, 0)
        ids = next((key for key in _IDS if key in npz), None)
        if ids is None or not nodes:
            return None
        header = npz.header(ids)
        width, drawn = (npz.count("feat_dim") or 0), False
        if len(rows) == 2:
            width = rows[1]
        elif "feat_data" not in npz:
            width, drawn = DEFAULT_WIDTH, True
        train = npz.header("train_idx").size if "train_idx" in npz else int(0.6 * nodes)
        edges = header.shape[-1] if header.shape else 0
        return Shape(nodes, edges, width, train, header.dtype.itemsize, _size(path), drawn)


def _size(path: Path) -> int:
    """Size of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def cost(ref: DatasetRef, source: Path | None, query_gpu: bool = False) -> Cost | None:
    """Cost of preparing a dataset, without that of the base of ``+sym`` and ``+weights``.

    ``query_gpu``: look up a GPU's free memory, which starts CUDA in this process; else it is
    assumed to suffice. None for a real dataset without its source. Raises as :func:`shape`.
    """
    counts = shape(ref, source)
    if counts is None:
        return None
    cores = usable_cores()
    n, m, stored = counts.nodes, counts.edges, counts.stored_bytes()
    writing_s = stored / DISK_BYTES_PER_SECOND
    if ref.weights:  # everything else is linked from the base
        return Cost(4 * m / DISK_BYTES_PER_SECOND, 12 * n + 2 * _PIECES_BYTES, 4 * m)
    if ref.sym:  # features, labels and splits are linked from the base
        disk, keys = counts.topology_bytes(), 2 * m if _symmetric(ref) else m
        seconds = keys / SORTED_EDGES_PER_SECOND + disk / DISK_BYTES_PER_SECOND
        return Cost(seconds, _sorting(n, keys), disk)
    drawn = ref.kind in ("twin", "rmat")
    if drawn and generator_device(m, gpu_bytes(n, m) if query_gpu else 0) == "cuda":
        return Cost(writing_s + m / GPU_EDGES_PER_SECOND, _PIECES_BYTES + 24 * n, stored)
    if ref.kind == "twin":
        # Of a symmetric graph, the generator keeps one end of every edge in addition.
        edge = counts.id_bytes + (counts.id_bytes // 2 if _symmetric(ref) else 0)
        memory = edge * m + 56 * n + _PIECES_BYTES
        return Cost(writing_s + m / TWIN_EDGES_PER_SECOND / cores, memory, stored)
    if ref.kind == "rmat":
        memory = 18 * m + 40 * n + _SEEDED_BYTES
        return Cost(writing_s + m / RMAT_EDGES_PER_SECOND / cores, memory, stored)
    if ref.kind == "rows":
        return Cost(writing_s, 2 * _PIECES_BYTES, stored)
    reading_s = counts.raw_bytes / RAW_BYTES_PER_SECOND + writing_s
    whole = 2 * counts.topology_bytes() + 16 * n + _SEEDED_BYTES
    if source is not None and source.suffix == ".npz" and _rows_in_order(source):
        return Cost(reading_s, whole, stored)  # the topology is read as a whole
    memory = max(whole, _sorting(n, m))
    return Cost(reading_s + m / SORTED_EDGES_PER_SECOND, memory, stored + 16 * m)


def _rows_in_order(path: Path) -> bool:
    """Whether a file has its edges row by row, so that they need no sort."""
    with NpzFile(path) as npz:
        return "indptr" in npz


def _sorting(nodes: int, edges: int) -> int:
    """Memory of ``store.csc.build_rows``."""
    return _KEY_BYTES * min(edges, EDGES_PER_PASS) + 24 * nodes + _PIECES_BYTES
