"""Turn tensors of torch, sparse matrices and plain values into arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.matrix import Matrix, by_columns, by_entries, by_rows
from gnnbench.datasets.importers.named import HeldArrays
from gnnbench.datasets.importers.nodes import FEATURES

# Elements of a tensor that repeats what it stores (``expand``): more are a hostile file's.
_EXPANDED = 1 << 24
_ADJACENCY = ("adj", "adj_t")


def held_arrays(path: Path, values: Mapping[Any, Any]) -> HeldArrays:
    """Tensors, arrays and single values of a mapping, by name; ``path`` is named in errors.

    A sparse matrix under ``adj`` or ``adj_t`` becomes ``indptr``, ``indices`` and, unless they are
    all 1, ``weights``: duplicate entries are summed and zeros dropped. Rows of ``adj_t`` are
    targets, as in PyG. It is left out where there is an ``edge_index``. Sparse features become
    ``feat_data``, ``feat_indices``, ``feat_indptr`` and ``feat_dim``.

    Raises ``DataError`` for a tensor that has no values of its own (meta, quantized, nested) or
    whose indices leave its shape.
    """
    arrays: dict[str, np.ndarray] = {}
    notes: list[str] = []
    dropped: set[str] = set()
    for key, value in values.items():
        if not isinstance(key, str):
            dropped.add(repr(key)[:40])
        elif value is None:
            continue
        elif is_sparse(value) and key in _ADJACENCY:
            if "edge_index" in values or "indptr" in arrays:
                dropped.add(key)
                continue
            matrix = sparse_matrix(value, f"'{key}' in {path}")
            arrays |= _edges(matrix, key)
            notes += matrix.edge_notes()
        elif is_sparse(value) and key in FEATURES:
            matrix = sparse_matrix(value, f"'{key}' in {path}", square=False)
            arrays |= _features(matrix, int(_shape(value)[1]))
            notes += matrix.notes
        elif hasattr(value, "detach") or isinstance(value, np.ndarray | np.generic):
            arrays[key] = as_array(value, f"'{key}' in {path}")
        elif isinstance(value, int | float | complex | str):
            arrays[key] = np.asarray(value)
        elif (listed := _listed(value)) is not None:
            arrays[key] = listed
        else:
            dropped.add(key)
    return HeldArrays(path, arrays, notes, dropped)


def _listed(value: Any) -> np.ndarray | None:
    """A list of numbers or texts as an array; None of anything else."""
    if not isinstance(value, list | tuple) or any(hasattr(item, "detach") for item in value):
        return None
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.dtype.kind in "biufU" else None


def _edges(matrix: Matrix, key: str) -> dict[str, np.ndarray]:
    found = {"indptr": matrix.indptr, "indices": matrix.indices}
    if matrix.values is not None:
        found["weights"] = matrix.values
    if key == "adj_t":
        found["rows"] = np.asarray("targets")
    return found


def _features(matrix: Matrix, width: int) -> dict[str, np.ndarray]:
    ones = matrix.values is None
    data = np.ones(len(matrix.indices), np.float32) if ones else matrix.values
    assert data is not None
    return {
        "feat_data": data, "feat_indices": matrix.indices, "feat_indptr": matrix.indptr,
        "feat_dim": np.asarray(width),
    }  # fmt: skip


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor of torch, a ``SparseTensor`` of PyG or a SciPy matrix."""
    if _is_scipy(value) or (hasattr(value, "sparse_sizes") and hasattr(value, "coo")):
        return True
    return str(getattr(value, "layout", "torch.strided")).startswith("torch.sparse")


def _is_scipy(value: Any) -> bool:
    return hasattr(value, "tocoo") and hasattr(value, "nnz")


def _shape(value: Any) -> tuple[int, ...]:
    sizes = value.sparse_sizes() if hasattr(value, "sparse_sizes") else value.shape
    return tuple(int(size) for size in sizes)


def sparse_matrix(value: Any, what: str, square: bool = True) -> Matrix:
    """A sparse tensor by its rows; nothing of torch walks its indices before they are checked.

    Raises ``DataError``, which names ``what``, for another layout, shape or index.
    """
    shape, layout = _shape(value), str(getattr(value, "layout", "SparseTensor"))
    if len(shape) != 2 or (square and shape[0] != shape[1]) or min(shape) < 1:
        kind = "a graph's is square" if square else "[nodes, width] is expected"
        raise DataError(f"{what} has shape {list(shape)}, {kind}; correct it")
    size = shape[0], shape[1]
    if hasattr(value, "sparse_sizes"):
        row, col, values = value.coo()
        ends = as_array(row, what), as_array(col, what)
        data = np.ones(len(ends[0]), bool) if values is None else as_array(values, what)
        return by_entries(*ends, data, size, what)
    if _is_scipy(value):
        found = value.tocoo()
        return by_entries(found.row, found.col, found.data, size, what)
    _check_backed(value, what)
    value = value.detach()
    if layout == "torch.sparse_coo":
        ids, data = as_array(value._indices(), what), as_array(value._values(), what)
        if ids.ndim != 2 or len(ids) != 2:
            raise DataError(f"{what} is a hybrid sparse tensor; give a matrix of numbers")
        return by_entries(ids[0], ids[1], data, size, what)
    if layout == "torch.sparse_csr":
        parts = value.crow_indices(), value.col_indices(), value.values()
        indptr, indices, data = (as_array(part, what) for part in parts)
        return by_rows(indptr, indices, data, size, what)
    if layout == "torch.sparse_csc":
        parts = value.ccol_indices(), value.row_indices(), value.values()
        indptr, indices, data = (as_array(part, what) for part in parts)
        return by_columns(indptr, indices, data, size, what)
    raise DataError(f"{what} has the layout {layout}; save its .to_sparse_coo()")


def _check_backed(value: Any, what: str) -> None:
    """Raise ``DataError`` for a tensor without values in memory."""
    device = str(getattr(value, "device", "cpu"))
    for wrong, kind, mend in (
        (device.startswith("meta"), "a meta tensor, which has no values", "save the real tensor"),
        (getattr(value, "is_quantized", False), "quantized", "save its .dequantize()"),
        (getattr(value, "is_nested", False), "a nested tensor", "save one tensor with one shape"),
    ):
        if wrong:
            raise DataError(f"{what} is {kind}; {mend}")


def as_array(values: Any, what: str = "the array") -> np.ndarray:
    """A tensor of any device and layout, or anything else, as a numpy array.

    Sparse tensors become dense, 16-bit floats float32, conjugates are resolved. Raises
    ``DataError``, which names ``what``, for what numpy cannot hold.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{what} has masked entries; fill them (.filled()) or leave them out")
    if not hasattr(values, "detach"):
        try:
            return np.asarray(values)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{what} is no array of numbers ({error}); correct it") from None
    _check_backed(values, what)
    if hasattr(values, "as_tensor"):  # PyG's EdgeIndex and Index
        values = values.as_tensor()
    values = values.detach().cpu()
    if is_sparse(values):
        return _dense(values, what)
    if str(values.layout) != "torch.strided":
        raise DataError(f"{what} has the layout {values.layout}; save its .to_dense()")
    stored = values.untyped_storage().nbytes() // max(values.element_size(), 1)
    if values.numel() > max(stored, _EXPANDED):
        raise DataError(
            f"{what} has {values.numel():,} elements and stores {stored:,}; "
            "save its .contiguous(), or leave it out"
        )
    try:
        if values.dtype.is_floating_point and values.element_size() < 4:
            values = values.float()  # numpy has no bfloat16
        return np.asarray(values.resolve_conj().resolve_neg().numpy())
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{what}, of type {values.dtype}, cannot be read ({first})") from None


def _dense(values: Any, what: str) -> np.ndarray:
    if values.ndim != 2:
        raise DataError(f"{what} is a sparse tensor of {values.ndim} dimensions; save .to_dense()")
    if values.numel() > _EXPANDED:
        raise DataError(
            f"{what} is a sparse tensor of {values.numel():,} elements; save a smaller .to_dense()"
        )
    found = sparse_matrix(values, what, square=False)
    dense = np.zeros(_shape(values), np.float32 if found.values is None else found.values.dtype)
    rows = np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
    dense[rows, found.indices] = 1 if found.values is None else found.values
    return dense
