"""Read sparse adjacency matrices: entries checked, duplicates summed, zeros dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import check_ids
from gnnbench.datasets.importers.node_values import int64_ids
from gnnbench.datasets.importers.room import check_memory
from gnnbench.datasets.store.validate import check_indptr
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Matrix:
    """A matrix by its rows, one entry at most at each position, none of them 0.

    ``indptr`` int64 or int32 ``[rows + 1]``; ``indices`` ``[entries]``, ascending in each row;
    ``values`` ``[entries]``, or None where all are 1 or True. ``notes`` say what was summed or
    dropped.
    """

    indptr: Array
    indices: Array
    values: Array | None
    notes: list[str] = field(default_factory=list)

    def edge_notes(self) -> list[str]:
        """``notes``, and whether edges get weights."""
        ones = "the matrix holds ones alone: edges have no weights"
        return self.notes + [ones] * (self.values is None)


def by_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    shape: tuple[int, int],
    origin: str,
) -> Matrix:
    """The matrix ``shape`` of CSR arrays. Raises ``DataError``, which names ``origin``."""
    import scipy.sparse as sp

    indptr, indices = (
        int64_ids(indptr, f"indptr of {origin}"),
        int64_ids(indices, f"ids of {origin}"),
    )
    if indptr.shape != (shape[0] + 1,) or indices.ndim != 1:
        raise DataError(
            f"{origin} has indptr of shape {indptr.shape} and indices of shape {indices.shape} for "
            f"{shape[0]} rows; correct the file"
        )
    check_indptr(
        indptr, len(indices), lambda wrong: DataError(f"{origin}: {wrong}; correct the file")
    )
    check_ids(indices, shape[1], origin, "correct the file")
    _check_values(values, len(indices), origin)
    return _canonical(sp.csr_matrix((_wide(values), indices, indptr), shape=shape), values)


def by_entries(
    row: Array, col: Array, values: Array, shape: tuple[int, int], origin: str
) -> Matrix:
    """The matrix ``shape`` of COO arrays. Raises ``DataError``, which names ``origin``."""
    import scipy.sparse as sp

    row, col = int64_ids(row, f"rows of {origin}"), int64_ids(col, f"columns of {origin}")
    if row.ndim != 1 or row.shape != col.shape:
        raise DataError(
            f"{origin} has row ids of shape {row.shape} and column ids of shape {col.shape}; "
            "correct the file"
        )
    check_ids(row, shape[0], origin, "correct the file")
    check_ids(col, shape[1], origin, "correct the file")
    check_memory(8 * (shape[0] + 1) + 24 * len(row), origin)
    _check_values(values, len(row), origin)
    matrix = sp.coo_matrix((_wide(values), (row, col)), shape=shape)
    listed = matrix.nnz
    return _canonical(matrix.tocsr(), values, listed)


def by_columns(
    indptr: Array,
    indices: Array,
    values: Array,
    shape: tuple[int, int],
    origin: str,
) -> Matrix:
    """The matrix ``shape`` of CSC arrays. Raises ``DataError``, which names ``origin``."""
    import scipy.sparse as sp

    turned = by_rows(indptr, indices, values, (shape[1], shape[0]), origin)
    data = np.ones(len(turned.indices), bool) if turned.values is None else turned.values
    rows = sp.csc_matrix((data, turned.indices, turned.indptr), shape=shape).tocsr()
    kept = None if turned.values is None else rows.data
    return Matrix(rows.indptr, rows.indices, kept, turned.notes)


def _check_values(values: Array, count: int, origin: str) -> None:
    if values.shape != (count,) or values.dtype.kind not in "fiub":
        raise DataError(
            f"values of {origin}, the edges' weights, have type {values.dtype} and shape "
            f"{values.shape}, numbers [{count}] are expected; correct them"
        )


def _wide(values: Array) -> Array:
    """Values that can be summed without overflow, in an array of their own."""
    return values.astype(bool if values.dtype.kind == "b" else np.float64)


def _canonical(matrix: csr_matrix, values: Array, listed: int = 0) -> Matrix:
    notes = []
    listed = listed or matrix.nnz
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sums in place, and the indices are the caller's
        matrix.sum_duplicates()
    if summed := listed - matrix.nnz:
        how = "merged" if values.dtype.kind == "b" else "summed"
        notes.append(f"duplicate entries of the matrix {how}, as scipy does: {summed:,}")
    if not matrix.data.all():
        entries = matrix.nnz
        matrix = matrix.copy()
        matrix.eliminate_zeros()
        dropped = entries - matrix.nnz
        notes.append(f"zero entries of the matrix dropped, since they are no edges: {dropped:,}")
    data = matrix.data
    if data.dtype.kind == "b" or bool((data == 1).all()):
        return Matrix(matrix.indptr, matrix.indices, None, notes)
    if values.dtype == np.float32:
        data = data.astype(np.float32)
    return Matrix(matrix.indptr, matrix.indices, data, notes)
