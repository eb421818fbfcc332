"""Edges as arrays in the forms of common files, and their direction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.importers.common import ImportOptions, checked_edges
from gnnbench.datasets.importers.named import NamedArrays
from gnnbench.datasets.importers.node_values import int64_ids
from gnnbench.datasets.importers.scipyfile import is_scipy, keys_of, scipy_matrix
from gnnbench.datasets.store.csc import EdgeChunks, csc_edges, edges_are_symmetric, index_dtype
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.datasets.store.topology import write_csc
from gnnbench.datasets.store.validate import check_indptr
from gnnbench.datasets.store.writer import GraphWriter
from gnnbench.schema.arrays import Array

ROWS = ("targets", "sources")
WEIGHTS = ("weights", "edge_weight", "weight")

# Keys that say which end is which.
_ENDS = (("src", "dst"), ("source", "target"))


@dataclass
class EdgeArrays:
    """Edges of a source: ``ends`` (two id arrays), or ``indptr`` and ``indices``.

    ``rows`` says what a row of the matrix is, ``targets`` or ``sources`` of its edges, empty where
    the source does not say. The first of ``ends`` is the row.
    ``num_nodes`` 0: not said. ``weights`` go with the edges as they are listed.
    """

    rows: str
    num_nodes: int = 0
    ends: tuple[Array, Array] | None = None
    indptr: Array | None = None
    indices: Array | None = None
    weights: Array | None = None
    used: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of listed edges."""
        listed = self.ends[0] if self.ends is not None else self.indices
        assert listed is not None
        return len(listed)


def find_edges(arrays: NamedArrays) -> EdgeArrays:
    """The edges among named arrays. Raises ``DataError`` where there are none."""
    if is_scipy(arrays):
        edges = _scipy(arrays)
    elif "edge_index" in arrays:
        header = arrays.header("edge_index")
        if len(header.shape) != 2 or header.shape[0] != 2:
            raise DataError(
                f"edge_index has shape {header.shape} in {arrays.path}, [2, num_edges] is "
                "expected: sources, then targets; correct it"
            )
        both = int64_ids(arrays.array("edge_index"), arrays.label("edge_index"))
        edges = EdgeArrays("sources", ends=(both[0], both[1]), used={"edge_index"})
    elif ends := next((e for e in _ENDS if e[0] in arrays and e[1] in arrays), None):
        edges = EdgeArrays("sources", ends=_pair(arrays, *ends), used={*ends})
    elif "row" in arrays and "col" in arrays:
        edges = EdgeArrays("", ends=_pair(arrays, "row", "col"), used={"row", "col"})
    elif "indptr" in arrays or "indices" in arrays:
        edges = EdgeArrays("", indptr=arrays.integers("indptr"), indices=arrays.integers("indices"))
        assert edges.indptr is not None
        edges.num_nodes = max(len(edges.indptr) - 1, 0)
        edges.used.update(("indptr", "indices"))
    else:
        present = ", ".join(sorted({*arrays.keys, *arrays.dropped})) or "nothing"
        raise DataError(
            f"{arrays.path} has no edges, but {present}: a graph has edge_index, or indptr and "
            "indices, src and dst, row and col, or is a matrix that scipy saved; add them"
        )
    if key := arrays.first(WEIGHTS):
        edges.weights = arrays.array(key)
        edges.used.add(key)
        _check_weights(edges, arrays.label(key))
    return edges


def _pair(arrays: NamedArrays, first: str, second: str) -> tuple[Array, Array]:
    ids = arrays.integers(first)
    return ids, arrays.integers(second, len(ids))


def _scipy(arrays: NamedArrays) -> EdgeArrays:
    """A square matrix as ``scipy.sparse.save_npz`` writes it."""
    matrix, shape = scipy_matrix(arrays)
    if shape[0] != shape[1]:
        raise DataError(
            f"the matrix in {arrays.path} is {shape[0]} x {shape[1]}, a graph's is square; "
            "give its adjacency matrix"
        )
    return EdgeArrays(
        "", shape[0], indptr=matrix.indptr, indices=matrix.indices, weights=matrix.values,
        used=keys_of(arrays), notes=matrix.edge_notes(),
    )  # fmt: skip


def _check_weights(edges: EdgeArrays, origin: str) -> None:
    listed, weights = edges.ends[0] if edges.ends is not None else edges.indices, edges.weights
    assert weights is not None and listed is not None
    count = len(listed)
    if weights.shape != (count,) or weights.dtype.kind not in "fiu":
        raise DataError(
            f"{origin}, the edges' weights, has type {weights.dtype} and shape {weights.shape}, "
            f"numbers [{count}] are expected; correct them or leave them out"
        )
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if wrong.any():
        entry = int(wrong.argmax())
        raise DataError(
            f"{origin}, the edges' weights, has {weights[entry]} for edge {entry} (from 0, as"
            " listed), where a finite number from 0 up is expected; correct it or leave the weights"
            " out"
        )


def write_edges(
    out: GraphWriter, edges: EdgeArrays, num_nodes: int, options: ImportOptions, arrays: NamedArrays
) -> None:
    """Write the topology, and the weights unless the graph is made symmetric.

    Raises ``UsageError`` for a directed graph of which neither the source nor ``options.rows``
    says which way its rows point, ``DataError`` for malformed arrays.
    """
    symmetric = options.add_reverse and options.merge
    in_rows = edges.indptr is not None
    rows = _rows(edges, options, arrays)
    if not rows and in_rows:
        _check_rows(edges, num_nodes, arrays)
    if not rows and not symmetric:
        rows = _either(edges, num_nodes, arrays)
    if symmetric and edges.weights is not None:
        edges.notes.append("edge weights not kept: merged edges have none of their own")
        edges.weights = None
    if edges.weights is not None:
        edges.weights, power = fitted(edges.weights)
        if power:
            edges.notes.append(
                f"edge weights: multiplied by 2^{power} to fit float32; only their ratios matter"
            )
    if in_rows and rows == "targets" and not symmetric:  # as they are
        assert edges.indptr is not None and edges.indices is not None
        wide = "int64" if edges.indices.dtype.itemsize == 8 else index_dtype(num_nodes)
        out.write("indptr", "int64", (num_nodes + 1,), [edges.indptr])
        out.write("indices", wide, edges.indices.shape, row_chunks(edges.indices))
        if edges.weights is not None:
            out.write("weights", "float32", edges.weights.shape, row_chunks(edges.weights))
        return
    if in_rows:
        _check_rows(edges, num_nodes, arrays)
    chunks = _chunks(edges, rows, num_nodes, arrays)
    write_csc(out, chunks, num_nodes, add_reverse=symmetric, merge=symmetric)
    if edges.weights is not None:
        src, dst = _whole(chunks)
        # The CSC has its rows sorted; among parallel edges any order is one.
        order = np.lexsort((src, dst))
        out.write("weights", "float32", order.shape, row_chunks(edges.weights[order]))


def fitted(weights: Array) -> tuple[Array, int]:
    """Weights of a range that float32 has, and the power of two that they were multiplied by.

    Weights that float32 has already are returned as they are. The product is exact in float64.
    Raises ``DataError`` where one that is not 0 would become 0.
    """
    sizes = np.abs(weights[np.isfinite(weights) & (weights != 0)]).astype(np.float64)
    if weights.dtype.kind != "f" or not sizes.size:
        return weights, 0
    limits = np.finfo(np.float32)
    if sizes.min() >= limits.tiny and sizes.max() <= limits.max:
        return weights, 0
    power = 1 - int(np.frexp(sizes.max())[1])  # the largest is 1 to 2 afterwards
    scaled = np.ldexp(weights.astype(np.float64), power)
    if (np.float32(scaled[weights != 0]) == 0).any():
        raise DataError(
            f"edge weights from {sizes.min():g} to {sizes.max():g} (without signs) have ratios that"
            " float32 has not; remove the edges of the smallest, or leave the weights out"
        )
    return scaled, power


def _rows(edges: EdgeArrays, options: ImportOptions, arrays: NamedArrays) -> str:
    said = edges.rows or str(arrays.scalar("rows", ""))
    if said not in ("", *ROWS):
        raise DataError(
            f"'rows' in {arrays.path} is '{said}', targets or sources is expected; correct it"
        )
    if options.rows and said and options.rows != said:
        raise UsageError(
            f"{arrays.path} says itself that the rows are {said}; leave --rows {options.rows} out"
        )
    return options.rows or said


def _either(edges: EdgeArrays, num_nodes: int, arrays: NamedArrays) -> str:
    """What rows are called of a graph that is the same both ways, for the least to do."""
    chunks = _chunks(edges, "targets", num_nodes, arrays)
    if edges_are_symmetric(chunks) and (
        edges.weights is None or _same_weights(chunks, edges.weights)
    ):
        return "targets"
    raise UsageError(
        f"{arrays.path} is a directed graph that does not say which way it points: import it with "
        f"'gnnbench data import {arrays.path} --name NAME' and --rows targets (row v lists the "
        "sources of the edges into v), --rows sources (row u lists the targets of u's edges) or "
        "--symmetric (both ways), or put a text 'rows' into the file"
    )


def _same_weights(chunks: EdgeChunks, weights: Array) -> bool:
    """Of a graph that is the same both ways: whether its weights are."""
    src, dst = _whole(chunks)
    there, back = np.lexsort((weights, src, dst)), np.lexsort((weights, dst, src))
    return bool(np.array_equal(weights[there], weights[back]))


def _whole(chunks: EdgeChunks) -> tuple[Array, Array]:
    pieces = [*chunks()] or [(np.empty(0, np.int64), np.empty(0, np.int64))]
    return np.concatenate([src for src, _ in pieces]), np.concatenate([dst for _, dst in pieces])


def _chunks(edges: EdgeArrays, rows: str, num_nodes: int, arrays: NamedArrays) -> EdgeChunks:
    """(source, target) pieces, in the order of the weights."""
    if edges.ends is not None:
        for ids in edges.ends:
            if ids.dtype.kind not in "iu":
                raise DataError(
                    f"node ids in {arrays.path} have type {ids.dtype}, integers are expected; "
                    "correct them"
                )
        row, column = edges.ends
        src, dst = (column, row) if rows == "targets" else (row, column)
        return checked_edges(src, dst, num_nodes, arrays.path)
    assert edges.indptr is not None and edges.indices is not None
    listed = csc_edges(edges.indptr, edges.indices)
    if rows == "targets":
        return listed
    return lambda: ((src, dst) for dst, src in listed())


def _check_rows(edges: EdgeArrays, num_nodes: int, arrays: NamedArrays) -> None:
    assert edges.indptr is not None and edges.indices is not None

    def wrong(origin: str) -> DataError:
        return DataError(f"{arrays.path}: {origin}; correct the file")

    check_indptr(edges.indptr, len(edges.indices), wrong)
    checked_edges(edges.indices, edges.indices[:0], num_nodes, arrays.path)
