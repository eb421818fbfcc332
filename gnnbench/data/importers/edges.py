"""Import a graph from a list of edges as text: one edge a line, ``source target [weight]``.

Separated by blanks, tabs, commas or semicolons, gzipped or not; lines that start with ``#`` or
``%`` are comments. A first line may name the columns. Ids are integers from 0 on with any gaps;
where they are not just 0, 1, ..., n - 1, nodes are numbered in the order of their ids and the
graph keeps the ids as ``node_ids``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gnnbench.data.importers.common import ImportOptions
from gnnbench.data.importers.nodes import NodeSources
from gnnbench.data.importers.rawfile import reading
from gnnbench.data.importers.tally import tally
from gnnbench.data.store.csc import EdgeChunks
from gnnbench.data.store.layout import row_chunks
from gnnbench.data.store.topology import write_csc
from gnnbench.data.store.writer import GraphWriter
from gnnbench.errors import DataError

_SOURCES = {"source", "src", "from", "fromnodeid", "from_node_id", "u", "node1", "node_1", "id_1"}
_TARGETS = {"target", "dst", "destination", "to", "tonodeid", "to_node_id", "v", "node2", "node_2",
            "id_2"}  # fmt: skip
_WEIGHTS = {"weight", "w", "edge_weight", "value"}
_COMMENTS = "#%"
_LINE_BYTES = 1 << 16


@dataclass(frozen=True)
class EdgeFormat:
    """How an edge list is written: separator (a pattern), columns of the ids, lines to skip."""

    separator: str
    source: int = 0
    target: int = 1
    skip: int = 0  # lines before the first edge
    header: bool = False
    comment: str = "#"
    ignored: tuple[str, ...] = ()  # columns that are left out, by name


def import_edges(path: Path, out: GraphWriter, options: ImportOptions) -> dict[str, Any]:
    """Write the arrays of an edge list; features, labels and split that are not given are seeded.

    Every line ``u v`` is the edge u -> v: u becomes an in-neighbour of v. Parallel edges and
    self-loops are kept unless ``options.source`` says otherwise. Weights are not kept, and the
    result says so. With given features or labels node k is their row k, so ids are kept as they
    are. Raises ``DataError`` for a file that is no edge list, or an id without a row.
    """
    form = sniff(path)
    nodes = NodeSources(None, options.given)
    wanted = options.num_nodes or nodes.num_nodes
    out.write("scratch_edges", "int64", (None, 2), edge_pieces(path, form))
    edges = out.read("scratch_edges")
    high = _check_ids(edges, path, form)
    if wanted:
        if high >= wanted:
            raise DataError(
                f"{_bad_line(path, form, wanted - 1)}, outside 0..{wanted - 1}; correct the "
                "number of nodes (or of rows of features or labels), or the file"
            )
        ids, num_nodes = None, wanted
    else:
        ids = _used_ids(edges, high)
        num_nodes = len(ids)
        if num_nodes == high + 1:
            ids = None
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
    about = nodes.write(out, num_nodes, options)
    if form.ignored:
        notes.append(f"not kept: {', '.join(form.ignored)} (an .npz can hold weights)")
    return {
        **about,
        "source": f"edge list {path}",
        "loader": "edge-list",
        "notes": [*notes, *nodes.notes],
        "symmetric": True if options.add_reverse and options.merge else None,
    }


def sniff(path: Path) -> EdgeFormat:
    """Find out how an edge list is written. Raises ``DataError`` where it is none."""
    comment, first, second, skip = "#", "", "", 0
    with reading(path), _text(path) as file:
        while line := file.readline(_LINE_BYTES).decode("utf-8", "replace"):
            text = line.strip().lstrip("\ufeff")
            if text.startswith("%%MatrixMarket"):
                raise DataError(
                    f"{path} is a Matrix Market file; keep its lines of entries only, one "
                    "'row column' each, and import that"
                )
            if first and text and text[0] not in _COMMENTS:
                second = text
                break
            if text and text[0] not in _COMMENTS:
                first = text
            elif not first:
                comment, skip = text[:1] or comment, skip + 1
    if not all(sign.isprintable() or sign.isspace() for sign in first) or "\ufffd" in first:
        raise DataError(
            f"{path} is not text; give an edge list with one 'source target' a line, an .npz, a .pt"
            " or a graph file of DGL, by these endings"
        )
    if not first:
        raise DataError(f"{path} has no edges; give a file with one 'source target' a line")
    separator = next((s for s in ",;" if s in first), r"\s+")
    names = _fields(first, separator)
    if _is_id(names[0]) and (len(names) < 2 or _is_id(names[1])):
        _check_columns(path, names)
        weights = ("weights",) * (len(names) == 3)
        return EdgeFormat(separator, skip=skip, comment=comment, ignored=weights)
    low = [name.strip("\"'").lower() for name in names]
    sources = [i for i, name in enumerate(low) if name in _SOURCES]
    targets = [i for i, name in enumerate(low) if name in _TARGETS]
    if len(sources) != 1 or len(targets) != 1:
        if second and not all(_is_id(field) for field in _fields(second, separator)[:2]):
            raise DataError(
                f"{path} has '{first[:60]}' where two ids are expected, which are whole numbers;"
                " number the nodes from 0 on"
            )
        raise DataError(
            f"the first line of {path} ('{first[:60]}') is neither an edge of integer ids nor a "
            "header that names one 'source' and one 'target'; correct it, or put # before it"
        )
    if second and len(_fields(second, separator)) != len(names):
        raise DataError(
            f"{path} has {len(names)} names in its header and {len(_fields(second, separator))} "
            "columns below it; correct the header"
        )
    chosen = {sources[0], targets[0]}
    ignored = tuple(
        "weights" if name in _WEIGHTS else name for i, name in enumerate(low) if i not in chosen
    )
    return EdgeFormat(separator, sources[0], targets[0], skip + 1, True, comment, ignored)


def edge_pieces(path: Path, form: EdgeFormat, rows: int = 1 << 20) -> Iterator[np.ndarray]:
    """Edges as int64 ``[*, 2]`` (source, target), in pieces and in order."""

    columns = [form.source, form.target]
    with reading(path):
        try:
            with _text(path) as file:
                yield from _parsed(file, form, columns, rows)
        except (ValueError, OverflowError):
            if wrong := _bad_line(path, form):
                raise DataError(f"{wrong}; correct it") from None
            raise


def _parsed(
    file: IO[bytes], form: EdgeFormat, columns: list[int], rows: int
) -> Iterator[np.ndarray]:
    import pandas as pd

    try:
        frames = pd.read_csv(
            file,
            sep=form.separator,
            header=None,
            skiprows=form.skip,
            comment=form.comment,
            skipinitialspace=True,
            dtype=dict.fromkeys(columns, "int64"),
            chunksize=rows,
        )
        for frame in frames:
            yield frame[columns].to_numpy()
    except pd.errors.EmptyDataError:
        return


def _bad_line(path: Path, form: EdgeFormat, most: int = (1 << 63) - 1) -> str:
    """What is wrong with the first line that is no edge between nodes 0 to ``most``, by its number.

    Empty where all are. Read only once it is known that some line is wrong: it takes long.
    """
    width, last = 0, max(form.source, form.target)
    with _text(path) as file:
        for number, line in enumerate(file, 1):
            text = (
                line.decode("utf-8", "replace").partition(form.comment)[0].strip().lstrip("\ufeff")
            )
            if number <= form.skip or not text:
                continue
            fields = _fields(text, form.separator)
            width = width or len(fields)
            ids = [fields[c].strip("\"'") for c in (form.source, form.target) if c < len(fields)]
            if len(fields) <= last:
                why = f"has {len(fields)} of {width} columns"
            elif len(fields) > width:
                why = f"has {len(fields)} columns where the first edge has {width}"
            elif bad := next((i for i in ids if not _is_id(i)), None):
                why = f"has '{bad[:40]}' where the id of a node is expected"
            elif bad := next((i for i in ids if not 0 <= int(i) <= most), None):
                why = f"has an edge with node {bad}"
            else:
                continue
            return f"line {number} of {path} ('{text[:60]}') {why}"
    return ""


def _text(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if gzipped else path.open("rb")  # type: ignore[return-value]


def _fields(line: str, separator: str) -> list[str]:
    parts = line.split() if separator == r"\s+" else line.split(separator)
    return [part.strip() for part in parts]


def _is_id(text: str) -> bool:
    return text.lstrip("+-").isdigit()


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


def _check_ids(edges: np.ndarray, path: Path, form: EdgeFormat) -> int:
    """The largest id. Raises ``DataError`` for none, a negative one, and for a line of counts."""
    if len(edges) == 0:
        raise DataError(f"{path} has no edges; give a file with one 'source target' a line")
    low, high, high_below = 0, 0, -1
    for number, piece in enumerate(row_chunks(edges)):
        low, high = min(low, int(piece.min())), max(high, int(piece.max()))
        below = piece[1:] if number == 0 else piece
        high_below = max(high_below, int(below.max(initial=-1)))
    if low < 0:
        raise DataError(f"{_bad_line(path, form)}; number the nodes from 0 on")
    nodes, count = (int(v) for v in edges[0])
    if not form.header and count == len(edges) - 1 and nodes > high_below >= 0:
        raise DataError(
            f"the first line of {path} ('{nodes} {count}') tells how many nodes and edges there "
            "are; put # before it (or, if it is an edge, move it down)"
        )
    return high


def _used_ids(edges: np.ndarray, high: int) -> np.ndarray:
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


def _renumbered(edges: np.ndarray, ids: np.ndarray | None) -> EdgeChunks:
    step = 1 << 22

    def chunks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(edges), step):
            piece = np.asarray(edges[start : start + step])
            if ids is not None:
                piece = np.searchsorted(ids, piece)
            yield piece[:, 0], piece[:, 1]

    return chunks
