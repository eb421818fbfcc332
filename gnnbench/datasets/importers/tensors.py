"""Turn tensors of torch, sparse matrices and plain values into arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.matrix import Matrix, by_columns, by_entries, by_rows
from gnnbench.datasets.importers.named import MemoryArrays
from gnnbench.datasets.importers.nodes import FEATURES
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    import torch
    from scipy.sparse import coo_matrix

# Elements of a tensor that repeats what it stores (``expand``): more are a hostile file's.
_EXPANDED = 1 << 24
_ADJACENCY = ("adj", "adj_t")

Key = TypeVar("Key")


class PygSparseTensor(Protocol):
    """The part of PyG's ``SparseTensor`` that is read."""

    def sparse_sizes(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    def coo(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Rows, columns and values of the entries."""


def named_tensors(path: Path, values: Mapping[Key, object]) -> MemoryArrays:
    """Tensors, arrays and single values of a mapping, by name; ``path`` is named in errors.

    A sparse matrix under ``adj`` or ``adj_t`` becomes ``indptr``, ``indices`` and, unless they are
    all 1, ``weights``: duplicate entries are summed and zeros dropped. Rows of ``adj_t`` are
    targets, as in PyG. It is left out where there is an ``edge_index``. Sparse features become
    ``feat_data``, ``feat_indices``, ``feat_indptr`` and ``feat_dim``.

    Raises ``DataError`` for a tensor that has no values of its own (meta, quantized, nested) or
    whose indices leave its shape.
    """
    arrays: dict[str, Array] = {}
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
        elif (listed := _from_list(value)) is not None:
            arrays[key] = listed
        else:
            dropped.add(key)
    return MemoryArrays(path, arrays, notes, dropped)


def _from_list(value: object) -> Array | None:
    """A list of numbers or texts as an array; None for any other value."""
    if not isinstance(value, list | tuple) or any(hasattr(item, "detach") for item in value):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return array if array.dtype.kind in "biufU" else None


def _edges(matrix: Matrix, key: str) -> dict[str, Array]:
    arrays = {"indptr": matrix.indptr, "indices": matrix.indices}
    if matrix.values is not None:
        arrays["weights"] = matrix.values
    if key == "adj_t":
        arrays["rows"] = np.asarray("targets")
    return arrays


def _features(matrix: Matrix, width: int) -> dict[str, Array]:
    ones = matrix.values is None
    data = np.ones(len(matrix.indices), np.float32) if ones else matrix.values
    assert data is not None
    return {
        "feat_data": data, "feat_indices": matrix.indices, "feat_indptr": matrix.indptr,
        "feat_dim": np.asarray(width),
    }  # fmt: skip


def is_sparse(value: object) -> bool:
    """Whether a value is a sparse tensor of torch, a ``SparseTensor`` of PyG or a SciPy matrix."""
    if _is_scipy(value) or (hasattr(value, "sparse_sizes") and hasattr(value, "coo")):
        return True
    return str(getattr(value, "layout", "torch.strided")).startswith("torch.sparse")


def _is_scipy(value: object) -> bool:
    return hasattr(value, "tocoo") and hasattr(value, "nnz")


def _shape(value: object) -> tuple[int, ...]:
    if hasattr(value, "sparse_sizes"):
        return tuple(int(size) for size in cast(PygSparseTensor, value).sparse_sizes())
    return tuple(int(size) for size in cast("torch.Tensor", value).shape)


def sparse_matrix(value: object, origin: str, square: bool = True) -> Matrix:
    """Convert a sparse matrix to CSR; torch does not use its indices before they are checked.

    Raises ``DataError``, which names ``origin``, for another layout, shape or index.
    """
    shape, layout = _shape(value), str(getattr(value, "layout", "SparseTensor"))
    if len(shape) != 2 or (square and shape[0] != shape[1]) or min(shape) < 1:
        kind = "a graph's is square" if square else "[nodes, width] is expected"
        raise DataError(f"{origin} has shape {list(shape)}, {kind}; correct it")
    size = shape[0], shape[1]
    if hasattr(value, "sparse_sizes"):
        row, col, values = cast(PygSparseTensor, value).coo()
        ends = as_array(row, origin), as_array(col, origin)
        data = np.ones(len(ends[0]), bool) if values is None else as_array(values, origin)
        return by_entries(*ends, data, size, origin)
    if _is_scipy(value):
        coo = cast("coo_matrix", cast("coo_matrix", value).tocoo())
        return by_entries(coo.row, coo.col, coo.data, size, origin)
    _check_has_values(value, origin)
    tensor = cast("torch.Tensor", value).detach()
    if layout == "torch.sparse_coo":
        ids, data = (
            as_array(tensor._indices(), origin),
            as_array(tensor._values(), origin),
        )
        if ids.ndim != 2 or len(ids) != 2:
            raise DataError(f"{origin} is a hybrid sparse tensor; give a matrix of numbers")
        return by_entries(ids[0], ids[1], data, size, origin)
    if layout == "torch.sparse_csr":
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        indptr, indices, data = (as_array(part, origin) for part in parts)
        return by_rows(indptr, indices, data, size, origin)
    if layout == "torch.sparse_csc":
        parts = tensor.ccol_indices(), tensor.row_indices(), tensor.values()
        indptr, indices, data = (as_array(part, origin) for part in parts)
        return by_columns(indptr, indices, data, size, origin)
    raise DataError(f"{origin} has the layout {layout}; save its .to_sparse_coo()")


def _check_has_values(value: object, origin: str) -> None:
    """Raise ``DataError`` for a tensor without values in memory."""
    device = str(getattr(value, "device", "cpu"))
    for is_wrong, kind, fix in (
        (device.startswith("meta"), "a meta tensor, which has no values", "save the real tensor"),
        (getattr(value, "is_quantized", False), "quantized", "save its .dequantize()"),
        (getattr(value, "is_nested", False), "a nested tensor", "save one tensor with one shape"),
    ):
        if is_wrong:
            raise DataError(f"{origin} is {kind}; {fix}")


def as_array(values: object, origin: str = "the array") -> Array:
    """Convert a tensor of any device and layout, or any array-like object, to a numpy array.

    Sparse tensors become dense, 16-bit floats become float32, conjugates are resolved. Raises
    ``DataError``, which names ``origin``, if numpy cannot represent the values.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{origin} has masked entries; fill them (.filled()) or leave them out")
    if not hasattr(values, "detach"):
        try:
            return np.asarray(values)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{origin} is no array of numbers ({error}); correct it") from None
    _check_has_values(values, origin)
    if hasattr(values, "as_tensor"):  # PyG's EdgeIndex and Index
        values = values.as_tensor()
    tensor = cast("torch.Tensor", values).detach().cpu()
    if is_sparse(tensor):
        return _dense(tensor, origin)
    if str(tensor.layout) != "torch.strided":
        raise DataError(f"{origin} has the layout {tensor.layout}; save its .to_dense()")
    stored = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    if tensor.numel() > max(stored, _EXPANDED):
        raise DataError(
            f"{origin} has {tensor.numel():,} elements and stores {stored:,}; "
            "save its .contiguous(), or leave it out"
        )
    try:
        if tensor.dtype.is_floating_point and tensor.element_size() < 4:
            tensor = tensor.float()  # numpy has no bfloat16
        return np.asarray(tensor.resolve_conj().resolve_neg().numpy())
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{origin}, of type {tensor.dtype}, cannot be read ({first})") from None


def _dense(values: torch.Tensor, origin: str) -> Array:
    if values.ndim != 2:
        raise DataError(
            f"{origin} is a sparse tensor of {values.ndim} dimensions; save .to_dense()"
        )
    if values.numel() > _EXPANDED:
        raise DataError(
            f"{origin} is a sparse tensor of {values.numel():,} elements; save a smaller"
            " .to_dense()"
        )
    matrix = sparse_matrix(values, origin, square=False)
    dtype = np.dtype(np.float32) if matrix.values is None else matrix.values.dtype
    dense: Array = np.zeros(_shape(values), dtype)
    rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    dense[rows, matrix.indices] = 1 if matrix.values is None else matrix.values
    return dense
