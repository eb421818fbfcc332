"""Read the matrices that ``scipy.sparse.save_npz`` writes."""

from __future__ import annotations

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.matrix import Matrix, by_columns, by_entries, by_rows
from gnnbench.datasets.importers.named import NamedArrays
from gnnbench.schema.arrays import Array

_FORMATS = ("csr", "csc", "coo", "bsr", "dia")


def is_scipy(arrays: NamedArrays) -> bool:
    """Whether scipy wrote the file: a lone ``indptr`` says nothing of rows or columns."""
    if "format" not in arrays or arrays.header("format").size != 1 or "edge_index" in arrays:
        return False
    return str(arrays.scalar("format")) in _FORMATS


def keys_of(arrays: NamedArrays) -> set[str]:
    """The arrays that scipy's form of a matrix has."""
    names = {"data", "shape", "indptr", "indices", "row", "col", "coords"}
    return names & arrays.keys


def scipy_matrix(arrays: NamedArrays) -> tuple[Matrix, tuple[int, int]]:
    """The matrix by its rows, and its shape.

    Duplicate entries are summed and zeros dropped, as ``notes`` of the matrix say. Raises
    ``DataError`` for another of scipy's formats than CSR, CSC and COO, and for a malformed matrix.
    """
    kind, origin = str(arrays.scalar("format")), f"the matrix in {arrays.path}"
    rows, columns = (int(size) for size in arrays.integers("shape", 2))
    if min(rows, columns) < 1:
        raise DataError(f"{origin} is {rows} x {columns}, it needs a row and a column; correct it")
    data = arrays.array("data")
    if kind == "coo":
        return by_entries(*_ends(arrays), data, (rows, columns), origin), (rows, columns)
    if kind not in ("csr", "csc"):
        raise DataError(
            f"{arrays.path} is a matrix in scipy's format {kind}; save its .tocsr() instead"
        )
    indptr = arrays.integers("indptr", (rows if kind == "csr" else columns) + 1)
    read = by_rows if kind == "csr" else by_columns
    return read(indptr, arrays.integers("indices"), data, (rows, columns), origin), (
        rows,
        columns,
    )


def _ends(arrays: NamedArrays) -> tuple[Array, Array]:
    if "row" in arrays or "coords" not in arrays:
        row = arrays.integers("row")
        return row, arrays.integers("col", len(row))
    coords = arrays.array("coords")  # of scipy's arrays, not its matrices
    if coords.ndim != 2 or len(coords) != 2:
        raise DataError(
            f"{arrays.label('coords')} has shape {coords.shape}, [2, entries] is expected; "
            "correct the file"
        )
    return coords[0], coords[1]
