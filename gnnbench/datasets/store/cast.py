"""Convert pieces of arrays to the types of the store."""

from __future__ import annotations

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.layout import little_endian


def as_stored(name: str, piece: np.ndarray, dtype: str) -> np.ndarray:
    """A piece of the array ``name`` as ``dtype``, contiguous.

    Raises ``DataError`` for another kind of type, a value beyond ``dtype``, and a weight that it
    rounds to 0.
    """
    piece = np.asarray(piece)
    target = little_endian(dtype)
    integral = target.kind == "i"
    if (integral and piece.dtype.kind not in "iu") or (
        not integral and piece.dtype.kind not in "fiu"
    ):
        raise DataError(f"'{name}' has type {piece.dtype}, {dtype} is expected; correct the input")
    if integral and piece.size and not np.can_cast(piece.dtype, target):
        limits = np.iinfo(target)
        low, high = int(piece.min()), int(piece.max())
        if low < limits.min or high > limits.max:
            bad = low if low < limits.min else high
            raise DataError(f"'{name}' has the value {bad}, beyond {dtype}; correct the input")
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(piece, dtype=target)
    if not np.can_cast(piece.dtype, target, "safe") and not integral:
        beyond = np.isinf(found) & np.isfinite(piece)
        if beyond.any():
            bad = piece[beyond].flat[0]
            raise DataError(f"'{name}' has the value {bad:g}, beyond {dtype}; correct the input")
        lost = (found == 0) & (piece != 0)
        if name == "weights" and lost.any():
            raise DataError(
                f"'{name}' has the value {piece[lost].flat[0]:g}, which {dtype} rounds to 0; "
                "multiply all weights by one number: only their ratios matter"
            )
    return found


def rounded(given: np.ndarray, stored: np.ndarray) -> int:
    """How many values of a piece a float type changed; NaN apart."""
    if np.can_cast(given.dtype, stored.dtype, "safe") or stored.dtype.kind != "f":
        return 0
    if given.dtype.kind in "iu":  # compared as integers: float64 would round both
        with np.errstate(invalid="ignore"):  # 2^63 and 2^64, which are rounded up
            return int(np.count_nonzero(stored.astype(given.dtype) != given))
    return int(np.count_nonzero((stored != given) & ~np.isnan(given)))
