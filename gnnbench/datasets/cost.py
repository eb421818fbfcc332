"""What it takes to prepare a dataset, told before it begins: seconds, memory, disk.

Memory is fitted to what was measured of each way to make a graph: mostly up to 30 % above, of
``.npz`` files up to 25 % below. Seconds are rough: one core of a 2020s server and a common disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench.core.cgroups import usable_cores
from gnnbench.datasets.generators import rmat
from gnnbench.datasets.generators.parallel import gpu_bytes, making_device
from gnnbench.datasets.generators.seeded import DEFAULT_WIDTH
from gnnbench.datasets.importers.nodes import FEATURES
from gnnbench.datasets.importers.rawfile import NpzFile
from gnnbench.datasets.names import DatasetRef
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import EDGES_PER_PASS

DISK_BYTES_PER_SECOND = 250e6  # made, hashed, written and checked
TWIN_EDGES_PER_SECOND = 2e6  # of a core
RMAT_EDGES_PER_SECOND = 7e6  # of a core
GPU_EDGES_PER_SECOND = 100e6  # a guess
SORTED_EDGES_PER_SECOND = 5e6  # numpy's sort, one core
RAW_BYTES_PER_SECOND = 40e6  # unpacked and parsed
_PIECES_BYTES = 96 << 20  # what is on its way to the disk
_SEEDED_BYTES = 128 << 20  # the same of features and labels that numpy draws
_IDS = ("indices", "edge_index", "src", "source", "row")  # an id an edge, along the last axis
_KEY_BYTES = 20  # of an edge that is sorted and merged


@dataclass(frozen=True)
class Shape:
    """Counts of a graph that is not there yet; at most, where nobody can know.

    ``edges`` are directed, ``raw_bytes`` those of its source's files, ``drawn``: whether its
    features are, ``weighted``: whether edges have weights.
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
        """Of CSC."""
        return 8 * (self.nodes + 1) + self.id_bytes * self.edges

    def stored_bytes(self) -> int:
        """Of all files; features that are drawn may have none (``GNNBENCH_FEATURES``)."""
        unwritten = self.drawn and os.environ.get("GNNBENCH_FEATURES") == "memory"
        rows = 0 if unwritten else 4 * self.nodes * self.width
        weights = 4 * self.edges if self.weighted else 0
        return self.topology_bytes() + weights + rows + 2 * 8 * self.nodes  # labels and splits


@dataclass(frozen=True)
class Cost:
    """Seconds, the most memory at a time, and what the disk has to take, scratch included."""

    seconds: float
    memory_bytes: int
    disk_bytes: int

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(
            self.seconds + other.seconds,
            max(self.memory_bytes, other.memory_bytes),
            self.disk_bytes + other.disk_bytes,
        )


def shape(ref: DatasetRef, source: Path | None) -> Shape | None:
    """Counts of a dataset by its name, its manifest or the head of its file (``source``); None of a
    real one whose source is not here. Raises ``DataError`` for a file that cannot be read."""
    found = _plain_shape(ref, source)
    if found is None or ref.origin is None:
        return found
    both = ref.sym and not _symmetric(ref)
    edges = 2 * found.edges if both else found.edges
    return replace(found, edges=edges, raw_bytes=0, weighted=ref.weights)


def _symmetric(ref: DatasetRef) -> bool:
    return ref.manifest is not None and ref.manifest.symmetric


def _plain_shape(ref: DatasetRef, source: Path | None) -> Shape | None:
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
        nodes, edges, width = (int(meta[k]) for k in ("num_nodes", "num_edges", "feature_dim"))
        return Shape(nodes, edges, width, int(meta["train"]), drawn=False)
    if source is None:
        return None
    if (manifest := ref.manifest) is not None:
        counts = (manifest.num_nodes, manifest.num_edges, manifest.feature_dim, manifest.train_size)
        return Shape(*counts, raw_bytes=_size(source), drawn=False)
    return _npz_shape(source)


def _npz_shape(path: Path) -> Shape | None:
    """By the heads of its arrays; None where they do not say how many nodes there are."""
    with NpzFile(path) as npz:
        rows = next((npz.header(key).shape for key in FEATURES if key in npz), ())
        nodes = int(npz.scalar("num_nodes", 0)) or (rows[0] if rows else 0)
        if "indptr" in npz:
            nodes = max(npz.header("indptr").size - 1, 0)
        ids = next((key for key in _IDS if key in npz), None)
        if ids is None or not nodes:
            return None
        head = npz.header(ids)
        width, drawn = int(npz.scalar("feat_dim", 0)), False
        if len(rows) == 2:
            width = rows[1]
        elif "feat_data" not in npz:
            width, drawn = DEFAULT_WIDTH, True
        train = npz.header("train_idx").size if "train_idx" in npz else int(0.6 * nodes)
        edges = head.shape[-1] if head.shape else 0
        return Shape(nodes, edges, width, train, head.dtype.itemsize, _size(path), drawn)


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def cost(ref: DatasetRef, source: Path | None, begun: bool = False) -> Cost | None:
    """What it takes to prepare a dataset of which nothing is there but what it is made of by
    ``+sym`` or ``+weights``.

    ``begun``: a GPU may be asked how much of its memory is free, which starts CUDA in this process;
    else it is taken to have enough. None of a real one whose source is not here. Raises as
    :func:`shape`.
    """
    found = shape(ref, source)
    if found is None:
        return None
    cores = usable_cores()
    n, m, stored = found.nodes, found.edges, found.stored_bytes()
    writing_s = stored / DISK_BYTES_PER_SECOND
    if ref.weights:  # all else is the base's
        return Cost(4 * m / DISK_BYTES_PER_SECOND, 12 * n + 2 * _PIECES_BYTES, 4 * m)
    if ref.sym:  # features, labels and splits are the base's
        disk, keys = found.topology_bytes(), 2 * m if _symmetric(ref) else m
        seconds = keys / SORTED_EDGES_PER_SECOND + disk / DISK_BYTES_PER_SECOND
        return Cost(seconds, _sorting(n, keys), disk)
    drawn = ref.kind in ("twin", "rmat")
    if drawn and making_device(m, gpu_bytes(n, m) if begun else 0) == "cuda":
        return Cost(writing_s + m / GPU_EDGES_PER_SECOND, _PIECES_BYTES + 24 * n, stored)
    if ref.kind == "twin":
        # Both ends of a symmetric graph's edges wait for the other half.
        edge = found.id_bytes + (found.id_bytes // 2 if _symmetric(ref) else 0)
        memory = edge * m + 56 * n + _PIECES_BYTES
        return Cost(writing_s + m / TWIN_EDGES_PER_SECOND / cores, memory, stored)
    if ref.kind == "rmat":
        memory = 18 * m + 40 * n + _SEEDED_BYTES
        return Cost(writing_s + m / RMAT_EDGES_PER_SECOND / cores, memory, stored)
    if ref.kind == "rows":
        return Cost(writing_s, 2 * _PIECES_BYTES, stored)
    reading_s = found.raw_bytes / RAW_BYTES_PER_SECOND + writing_s
    whole = 2 * found.topology_bytes() + 16 * n + _SEEDED_BYTES
    if source is not None and source.suffix == ".npz" and _rows_in_order(source):
        return Cost(reading_s, whole, stored)  # its topology is read whole
    memory = max(whole, _sorting(n, m))
    return Cost(reading_s + m / SORTED_EDGES_PER_SECOND, memory, stored + 16 * m)


def _rows_in_order(path: Path) -> bool:
    """Whether a file has its edges row by row, so that none has to be sorted."""
    with NpzFile(path) as npz:
        return "indptr" in npz


def _sorting(nodes: int, edges: int) -> int:
    """Memory of ``store.csc.build_rows``."""
    return _KEY_BYTES * min(edges, EDGES_PER_PASS) + 24 * nodes + _PIECES_BYTES
