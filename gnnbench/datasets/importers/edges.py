"""Import a graph from a list of edges as text: one edge a line, ``source target [weight]``.

Columns are separated by blanks, tabs, commas or semicolons; files may be gzipped; ``#`` and ``%``
begin comments (``gnnbench.datasets.importers.textfile``). A first line may name the columns. Ids
are integers from 0 on, with any gaps. If they are not 0 to n - 1, nodes are numbered in the order
of their ids, and the graph keeps the ids as ``node_ids``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.generators.seeded import DEFAULT_WIDTH
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.nodes import NodeSources
from gnnbench.datasets.importers.rawfile import reading
from gnnbench.datasets.importers.room import check_room
from gnnbench.datasets.importers.tally import counts_lines, tally
from gnnbench.datasets.importers.textfile import (
    COMMENT_LINE,
    Skipped,
    blocks,
    columns_of,
    is_id,
    lines,
    open_text,
    without_blank_lines,
)
from gnnbench.datasets.store.csc import EdgeChunks
from gnnbench.datasets.store.disk import free_disk_bytes
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array

_SOURCES = {"source", "src", "from", "fromnodeid", "from_node_id", "u", "node1", "node_1", "id_1"}
_TARGETS = {"target", "dst", "destination", "to", "tonodeid", "to_node_id", "v", "node2", "node_2",
            "id_2"}  # fmt: skip
_WEIGHTS = {"weight", "w", "edge_weight", "value"}
_LARGEST = (1 << 63) - 1
_SPARE_BYTES = 1 << 28  # of the disk, which an edge list leaves free


@dataclass(frozen=True)
class EdgeFormat:
    """How an edge list is written: separator (a pattern), number of columns, those of the ids, and
    lines to skip."""

    separator: str
    columns: int = 2
    source: int = 0
    target: int = 1
    skip: int = 0  # lines up to the header
    header: bool = False
    ignored: tuple[str, ...] = ()  # columns that are left out, by name
    first: tuple[str, ...] = ()  # the columns of the first line


def import_edges(path: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Write the arrays of an edge list; features, labels and split that are not given are seeded.

    Every line ``u v`` is the edge u -> v: u becomes an in-neighbour of v. Parallel edges and
    self-loops are kept unless ``options.source`` says otherwise. Weights are not kept, and the
    result says so. With given features or labels node k is their row k, so ids are kept as they
    are. Raises ``DataError`` for a file that is no edge list, or an id without a row.
    """
    form = sniff(path)
    nodes = NodeSources(None, options.given)
    wanted = options.num_nodes or nodes.num_nodes
    skipped = Skipped()
    pieces = _while_disk_lasts(edge_pieces(path, form, skipped), out.folder, path)
    out.write("scratch_edges", "int64", (None, 2), pieces)
    edges = out.read("scratch_edges")
    high = _check_ids(edges, path, form)
    if wanted:
        if high >= wanted:
            line = f"{_bad_line(path, form, wanted - 1)}, outside 0..{wanted - 1}"
            if options.num_nodes:
                raise DataError(f"{line}; correct the number of nodes, or the file")
            raise DataError(f"{line}: {nodes.why_missing(high)}")
        ids, num_nodes = None, wanted
        isolated = wanted - len(_used_ids(edges, high))
    else:
        ids, isolated = _used_ids(edges, high), 0
        num_nodes = len(ids)
        if num_nodes == high + 1:
            ids = None
    width = options.feature_dim or DEFAULT_WIDTH
    stored = len(edges) * (2 if options.add_reverse else 1)
    check_room(out.folder, num_nodes, stored, width, path)
    notes = []
    if ids is not None:
        out.write("node_ids", "int64", (num_nodes,), row_chunks(ids))
        notes.append(
            f"ids were renumbered: {ids[0]}..{high} are nodes 0..{num_nodes - 1} in their order;"
            " that of node k is node_ids[k]"
        )
    write_csc(
        out,
        _renumbered(edges, ids),
        num_nodes,
        add_reverse=options.add_reverse,
        merge=options.merge,
        drop_self_loops=options.drop_self_loops,
    )
    notes[:0] = tally(len(edges), out.read("indptr"), out.read("indices"), options)
    if isolated:
        notes.append(f"nodes that no edge names: {isolated:,}, kept")
    about = nodes.write(out, num_nodes, options)
    if form.ignored:
        notes.append(f"not kept: {', '.join(form.ignored)} (an .npz can hold weights)")
    if form.ignored and not form.header and counts_lines(edges):
        notes.append(
            "the first column counts the lines: if it is an index, remove it and import again"
        )
    notes += skipped.notes(path)
    return {
        **about,
        "source": f"edge list {path}",
        "loader": "edge-list",
        "notes": [*notes, *nodes.notes],
        "symmetric": True if options.add_reverse and options.merge else None,
    }


def sniff(path: Path) -> EdgeFormat:
    """Find out how an edge list is written. Raises ``DataError`` where it is none."""
    first, second, at = "", "", 0
    with reading(path):
        with open_text(path) as file:
            _check_head(path, file.read(64))
        with open_text(path) as file:
            for number, text in lines(file):
                if text in ("", COMMENT_LINE):
                    continue
                if first:
                    second = text
                    break
                first, at = text, number
    if not all(sign.isprintable() or sign.isspace() for sign in first) or "\ufffd" in first:
        raise DataError(
            f"{path} is not text; give an edge list with one 'source target' a line, an .npz, a .pt"
            " or a graph file of DGL, by these endings"
        )
    if not first:
        raise DataError(f"{path} has no edges; give a file with one 'source target' a line")
    separator = _separator(first)
    names = columns_of(first, separator)
    if is_id(names[0]) and (len(names) < 2 or is_id(names[1])):
        _check_columns(path, names)
        weights = ("weights in column 3",) * (len(names) == 3)
        return EdgeFormat(separator, len(names), ignored=weights, first=tuple(names))
    low = [name.lower() for name in names]
    sources = [i for i, name in enumerate(low) if name in _SOURCES]
    targets = [i for i, name in enumerate(low) if name in _TARGETS]
    if len(sources) != 1 or len(targets) != 1:
        if second and not all(is_id(field) for field in columns_of(second, separator)[:2]):
            raise DataError(
                f"{path} has '{first[:60]}' where two ids are expected, which are whole numbers;"
                " number the nodes from 0 on"
            )
        raise DataError(
            f"the first line of {path} ('{first[:60]}') is neither an edge of integer ids nor a "
            "header that names one 'source' and one 'target'; correct it, or put # before it"
        )
    if second and len(columns_of(second, separator)) != len(names):
        raise DataError(
            f"{path} has {len(names)} names in its header and {len(columns_of(second, separator))} "
            "columns below it; correct the header"
        )
    chosen = {sources[0], targets[0]}
    ignored = tuple(
        "weights" if name in _WEIGHTS else name or f"column {i + 1}"
        for i, name in enumerate(low)
        if i not in chosen
    )
    return EdgeFormat(separator, len(names), sources[0], targets[0], at, True, ignored)


def _check_head(path: Path, head: bytes) -> None:
    """Raise ``DataError`` for formats whose lines are no edges between nodes of one kind."""
    if head.startswith(b"%%MatrixMarket"):
        raise DataError(
            f"{path} is a Matrix Market file; keep its lines of entries only, one "
            "'row column' each, and import that"
        )
    if re.match(rb"\s*<(!doctype|html)", head, re.IGNORECASE):
        raise DataError(f"{path} is a web page, not an edge list; see what its address gives")
    if re.match(rb"%\s*bip\b", head):
        raise DataError(
            f"{path} is a bipartite graph of KONECT, which counts both kinds of nodes from 1; add "
            "the number of the first kind to the ids of the second, and remove its first line"
        )


def _separator(first: str) -> str:
    """The separator that gives the first line two ids or the names of both ends."""
    present = [sign for sign in ",;" if sign in first]
    for separator in (*present, r"\s+"):
        names = [name.lower() for name in columns_of(first, separator)]
        if len(names) > 1 and is_id(names[0]) and is_id(names[1]):
            return separator
        if {*names} & _SOURCES and {*names} & _TARGETS:
            return separator
    return present[0] if present else r"\s+"


def edge_pieces(path: Path, form: EdgeFormat, skipped: Skipped | None = None) -> Iterator[Array]:
    """Edges as int64 ``[*, 2]`` (source, target), in pieces and in order.

    ``skipped`` counts comments and empty lines.
    """
    skip = form.skip
    with reading(path):
        try:
            with open_text(path) as file:
                for block in blocks(file, skipped):
                    if skip:
                        count = block.count(b"\n")
                        below = block.split(b"\n", skip)[-1] if count >= skip else b""
                        skip = max(skip - count, 0)
                    else:
                        below = block
                    yield _parsed(below, form)
        except (ValueError, OverflowError):
            if wrong := _bad_line(path, form):
                raise DataError(f"{wrong}; correct it") from None
            raise


def _parsed(block: bytes, form: EdgeFormat) -> Array:
    """The edges of a block of whole lines. Raises ``ValueError`` where a line is no edge."""
    import pandas as pd

    columns = [form.source, form.target]
    if form.separator != r"\s+":
        block = without_blank_lines(block)
    # pandas rounds a large id with a decimal point or an exponent, and casts inf: such blocks are
    # read as text.
    exact = not any(sign in block for sign in (b".", b"e", b"E", b"n", b"N"))
    if len(columns_of(next(_texts(block), ""), form.separator)) > form.columns:
        raise ValueError("another number of columns")  # pandas would make an index of the first
    try:
        frame = pd.read_csv(
            BytesIO(block),
            sep=form.separator,
            header=None,
            names=range(form.columns),
            comment=COMMENT_LINE,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
            encoding_errors="replace",  # in columns that are left out; in an id it is an error
            dtype=dict.fromkeys(columns, "int64" if exact else "str"),
        )
    except pd.errors.EmptyDataError:
        return np.empty((0, 2), np.int64)
    if b'"' in block and len(frame) != sum(1 for _ in _texts(block)):
        raise ValueError("a quote that is not closed in its line")  # lines became one edge
    if not form.header and frame.isna().to_numpy().any():
        raise ValueError("a missing value")
    if exact:
        return frame[columns].to_numpy()
    ids = frame[columns].to_numpy(object).reshape(-1)
    if not all(isinstance(one, str) and is_id(one) for one in ids):
        raise ValueError("an id that is no integer")
    return np.array([int(one) for one in ids], np.int64).reshape(-1, 2)


def _texts(block: bytes) -> Iterator[str]:
    """The lines of a block that hold an edge."""
    for line in re.finditer(rb"[^\n]+", block):
        text = line[0].decode("utf-8", "replace").strip()
        if text not in ("", COMMENT_LINE):
            yield text


def _while_disk_lasts(pieces: Iterator[Array], folder: Path, path: Path) -> Iterator[Array]:
    """The pieces, until the disk that they are written to is nearly full."""
    edges = 0
    for piece in pieces:
        if free_disk_bytes(folder) < piece.nbytes + _SPARE_BYTES:
            raise UsageError(
                f"the disk below {folder} is nearly full after {edges:,} edges of {path}; free some"
                " space, or set GNNBENCH_DATA to a folder on another disk"
            )
        edges += len(piece)
        yield piece


def _bad_line(path: Path, form: EdgeFormat, most: int = (1 << 63) - 1) -> str:
    """What is wrong with the first line that is no edge between nodes 0 to ``most``, by its number.

    Empty where all are. Read only once it is known that some line is wrong: it takes long.
    """
    last = max(form.source, form.target)
    with open_text(path) as file:
        for number, text in lines(file):
            if number <= form.skip or text in ("", COMMENT_LINE):
                continue
            fields = columns_of(text, form.separator)
            ids = [fields[c] for c in (form.source, form.target) if c < len(fields)]
            if len(fields) <= last or (len(fields) < form.columns and not form.header):
                why = f"has {len(fields)} of {form.columns} columns"
            elif len(fields) > form.columns:
                why = f"has {len(fields)} columns where the first edge has {form.columns}"
            elif (bad := next((i for i in ids if not is_id(i)), None)) is not None:
                why = f"has '{bad[:40]}' where the id of a node is expected"
            elif (bad := next((i for i in ids if not 0 <= int(i) <= most), None)) is not None:
                why = f"has an edge with node {bad}"
            elif not form.header and "" in fields:
                why = "has an empty column"
            elif text.count('"') % 2:
                why = "has a quote that is not closed"
            else:
                continue
            return f"line {number} of {path} ('{text[:60]}') {why}"
    return ""


def _check_columns(path: Path, names: list[str]) -> None:
    if len(names) < 2:
        raise DataError(
            f"the first line of {path} ('{names[0][:60]}') has one column where an edge has two "
            "ids; remove it or put # before it"
        )
    if len(names) > 3:
        raise DataError(
            f"{path} has {len(names)} columns; keep two ids and at most a weight, or give it a "
            "header that names 'source' and 'target'"
        )


def _check_ids(edges: Array, path: Path, form: EdgeFormat) -> int:
    """The largest id. Raises ``DataError`` for none, a negative one, and for a line of counts."""
    if len(edges) == 0:
        raise DataError(f"{path} has no edges; give a file with one 'source target' a line")
    low, high, low_below, high_below = 0, 0, _LARGEST, -1
    for number, piece in enumerate(row_chunks(edges)):
        low, high = min(low, int(piece.min())), max(high, int(piece.max()))
        below = piece[1:] if number == 0 else piece
        low_below = min(low_below, int(below.min(initial=_LARGEST)))
        high_below = max(high_below, int(below.max(initial=-1)))
    if low < 0:
        raise DataError(f"{_bad_line(path, form)}; number the nodes from 0 on")
    nodes, count = (int(v) for v in edges[0])
    from_one = low_below >= 1  # then the largest id is the number of nodes
    if len(form.first) == 3:  # rows, columns and entries, as below the banner of a matrix
        nodes = max(nodes, count)
        count = int(form.first[2]) if is_id(form.first[2]) else -1
    beyond = nodes > high_below or (from_one and nodes == high_below)
    if form.first and count == len(edges) - 1 and beyond and high_below >= 0:
        raise DataError(
            f"the first line of {path} ('{' '.join(form.first)}') tells how many nodes and edges "
            "there are; put # before it (or, if it is an edge, move it down)"
        )
    return high


def _used_ids(edges: Array, high: int) -> Array:
    """The ids that occur, sorted."""
    if high <= 8 * len(edges) + (1 << 20):  # a byte for every possible id is the cheaper way
        present = np.zeros(high + 1, bool)
        for piece in row_chunks(edges):
            present[piece.reshape(-1)] = True
        return np.flatnonzero(present)
    ids = np.empty(0, np.int64)
    for piece in row_chunks(edges):
        ids = np.union1d(ids, piece.reshape(-1))
    return ids


def _renumbered(edges: Array, ids: Array | None) -> EdgeChunks:
    step = 1 << 22

    def chunks() -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(edges), step):
            piece = np.asarray(edges[start : start + step])
            if ids is not None:
                piece = np.searchsorted(ids, piece)
            yield piece[:, 0], piece[:, 1]

    return chunks
