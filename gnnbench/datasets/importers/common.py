"""Options of importers, and the writing steps that they share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.generators.on_demand import write_features
from gnnbench.datasets.generators.seeded import (
    DEFAULT_CLASSES,
    DEFAULT_WIDTH,
    seeded_features,
    seeded_labels,
    seeded_split,
    seeded_split_of,
)
from gnnbench.datasets.importers.named import NodeArrays
from gnnbench.datasets.manifest import Source
from gnnbench.datasets.store.csc import EdgeChunks, csc_edges
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.validate import check_indptr
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import, besides its files.

    ``feature_dim``, ``num_classes`` and the split are used where the source has none (0: a
    default): ``split`` counts training, validation and test nodes, otherwise ``train_fraction`` of
    the labelled nodes train and the rest is halved, validation having a fifth of all at most.
    ``num_nodes`` says how many nodes an edge list has (0: those that it names). ``rows`` says what
    a row of a matrix is, ``targets`` or ``sources`` of its edges (empty: the source has to say it);
    ``given`` has features, labels and a split that are not in the source.
    """

    name: str
    seed: int = 0
    feature_dim: int = 0
    num_classes: int = 0
    source: Source | None = None
    split: tuple[int, int, int] = (0, 0, 0)
    train_fraction: float = 0.6
    num_nodes: int = 0
    rows: str = ""
    given: NodeArrays = NodeArrays()

    def changes_of_edges(self) -> dict[str, bool]:
        """``add_reverse``, ``merge`` and ``drop_self_loops`` by name."""
        names = ("add_reverse", "merge", "drop_self_loops")
        return {name: getattr(self, name) for name in names}

    @property
    def add_reverse(self) -> bool:
        """Whether the source lists an undirected edge once."""
        return self.source is not None and self.source.add_reverse

    @property
    def merge(self) -> bool:
        """Whether parallel edges become one."""
        return self.source is not None and self.source.merge

    @property
    def drop_self_loops(self) -> bool:
        """Whether self-loops are left out."""
        return self.source is not None and self.source.drop_self_loops


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path to a ``DataError`` that does not name it."""
    try:
        yield
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from None


def write_labels(
    out: GraphWriter, labels: Array | None, num_nodes: int, options: ImportOptions
) -> tuple[int, str]:
    """Write the labels, or seeded ones if there are none; returns class count and origin."""
    if labels is None or int(labels.max(initial=-1)) < 0:
        classes = options.num_classes or DEFAULT_CLASSES
        pieces = seeded_labels(num_nodes, classes, options.seed)
        out.write("labels", "int64", (num_nodes,), pieces)
        return classes, "seeded"
    out.write("labels", "int64", (num_nodes,), row_chunks(labels))
    return options.num_classes or int(labels.max()) + 1, "source"


def write_splits(
    out: GraphWriter,
    splits: tuple[Array, Array, Array] | None,
    num_nodes: int,
    options: ImportOptions,
) -> str:
    """Write the sorted split indices; returns ``source`` or a description of the seeded split.

    A seeded split is one of the labelled nodes: call it after ``write_labels``.
    """
    origin = "source"
    if splits is None:
        labelled = np.flatnonzero(out.read("labels") >= 0)
        count, seed = len(labelled), options.seed
        if options.split[0] and sum(options.split) <= count:
            drawn = seeded_split_of(count, seed, *options.split)
            origin = "random {}/{}/{} nodes, seed {}".format(*options.split, seed)
        else:
            train = options.train_fraction
            val = min(0.2, (1 - train) / 2)
            drawn = seeded_split(count, seed, train, val)
            shares = [f"{100 * share:g}" for share in (train, val, round(1 - train - val, 9))]
            origin = f"random {'/'.join(shares)}, seed {seed}"
        splits = (labelled[drawn[0]], labelled[drawn[1]], labelled[drawn[2]])
        if count < num_nodes:
            origin += ", of the labelled nodes"
    for name, idx in zip(("train_idx", "val_idx", "test_idx"), splits, strict=True):
        out.write(name, "int64", (len(idx),), [np.sort(idx)])
    return origin


def write_seeded_features(out: GraphWriter, num_nodes: int, options: ImportOptions) -> str:
    """Write features drawn around a centre per class; call it after ``write_labels``."""
    width = options.feature_dim or DEFAULT_WIDTH
    pieces = seeded_features(out.read("labels"), width, options.seed)
    write_features(out, (num_nodes, width), "seeded", pieces)
    return "seeded"


def check_ids(ids: Array, end: int, origin: str, advice: str) -> None:
    """Raise ``DataError`` for an id out of range."""
    for piece in row_chunks(ids):
        low, high = int(piece.min()), int(piece.max())
        if low < 0 or high >= end:
            bad = low if low < 0 else high
            raise DataError(f"{origin} has an edge with node {bad}, outside 0..{end - 1}; {advice}")


def checked_edges(src: Array, dst: Array, num_nodes: int, path: Path) -> EdgeChunks:
    """Chunks of two id arrays of equal length. Raises ``DataError`` for an id out of range."""
    for ids in (src, dst):
        check_ids(ids, num_nodes, str(path), "get it again")
    step = 1 << 22
    return lambda: (
        (src[start : start + step], dst[start : start + step]) for start in range(0, len(src), step)
    )


def write_listed(
    out: GraphWriter,
    chunks: EdgeChunks,
    num_nodes: int,
    *,
    add_reverse: bool = False,
    merge: bool = False,
    drop_self_loops: bool = False,
) -> list[str]:
    """Write the topology of listed edges as ``topology.write_csc`` does.

    Returns sentences on the edges that were added, merged or left out.
    """
    how = {"add_reverse": add_reverse, "merge": merge, "drop_self_loops": drop_self_loops}
    write_csc(out, chunks, num_nodes, **how)
    if not any(how.values()):
        return []
    listed, loops = _edges_and_loops(chunks)
    stored, kept = _edges_and_loops(csc_edges(out.read("indptr"), out.read("indices")))
    dropped = loops if drop_self_loops else 0
    notes = [f"edges listed: {listed:,}; stored: {stored:,}"]
    if add_reverse:
        notes[0] += ", each in both directions"
    if dropped:
        notes.append(f"edges from a node to itself: {dropped:,}, left out")
    if merge:
        distinct = (stored - kept) // 2 + kept if add_reverse else stored
        notes.append(f"edges that repeat another: {listed - dropped - distinct:,}, merged")
    return notes


def write_listed_file(
    out: GraphWriter, src: Array, dst: Array, num_nodes: int, path: Path, options: ImportOptions
) -> list[str]:
    """``write_listed`` of the ids in a dataset's file, changed as its manifest says."""
    chunks = checked_edges(src, dst, num_nodes, path)
    return write_listed(out, chunks, num_nodes, **options.changes_of_edges())


def _edges_and_loops(chunks: EdgeChunks) -> tuple[int, int]:
    """Number of edges and of self-loops."""
    edges = loops = 0
    for src, dst in chunks():
        edges += len(src)
        loops += int(np.count_nonzero(src == dst))
    return edges, loops


def checked_rows(indptr: Array, indices: Array, num_nodes: int, path: Path) -> EdgeChunks:
    """The edges of a CSR matrix of ``num_nodes`` rows as (column, row) pieces.

    Raises ``DataError``, which names ``path``, for a malformed ``indptr`` and for a column that is
    no node.
    """
    if num_nodes < 1:
        raise DataError(f"the graph in {path} has no nodes; get it again")
    check_indptr(indptr, len(indices), lambda wrong: DataError(f"{path}: {wrong}; get it again"))
    checked_edges(indices, indices[:0], num_nodes, path)
    return csc_edges(indptr, indices)


def csr_rows(data: Array, columns: Array, indptr: Array, width: int, path: Path) -> Iterator[Array]:
    """Dense row pieces of a CSR matrix, float32 unless its values need float64; duplicate entries
    are summed. Raises ``DataError`` for a malformed one."""
    import scipy.sparse as sp

    bad = (
        len(indptr) < 1
        or int(indptr[0]) != 0
        or int(indptr[-1]) != len(columns)
        or len(data) != len(columns)
        or (len(indptr) > 1 and int(np.diff(indptr).min()) < 0)
        or (len(columns) > 0 and (int(columns.min()) < 0 or int(columns.max()) >= width))
    )
    if bad:
        raise DataError(f"the sparse features of {path} are malformed; get it again")
    step = max(1, (1 << 24) // max(1, 4 * width))
    for start in range(0, len(indptr) - 1, step):
        ends = indptr[start : start + step + 1]
        part, shape = slice(int(ends[0]), int(ends[-1])), (len(ends) - 1, width)
        kind = np.float32 if np.can_cast(data.dtype, np.float32) else np.float64
        piece = sp.csr_matrix((data[part].astype(kind), columns[part], ends - ends[0]), shape)
        yield piece.toarray()  # sums duplicate entries
