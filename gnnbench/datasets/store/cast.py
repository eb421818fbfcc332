"""Convert chunks of arrays to the types of the store, and check their values."""

from __future__ import annotations

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.layout import little_endian
from gnnbench.schema.arrays import Array


def as_stored(name: str, piece: Array, dtype: str) -> Array:
    """A chunk of the array ``name`` as ``dtype``, contiguous.

    Raises ``DataError`` for a dtype of another kind, a value beyond ``dtype``, and a nonzero weight
    that ``dtype`` rounds to 0.
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
        stored = np.ascontiguousarray(piece, dtype=target)
    if not np.can_cast(piece.dtype, target, "safe") and not integral:
        overflowed = np.isinf(stored) & np.isfinite(piece)
        if overflowed.any():
            bad = piece[overflowed].flat[0]
            raise DataError(f"'{name}' has the value {bad:g}, beyond {dtype}; correct the input")
        underflowed = (stored == 0) & (piece != 0)
        if name == "weights" and underflowed.any():
            raise DataError(
                f"'{name}' has the value {piece[underflowed].flat[0]:g}, which {dtype} rounds to 0;"
                " multiply all weights by one number: only their ratios matter"
            )
    return stored


class PieceCheck:
    """Checks the values of features and weights chunk by chunk, before they are stored.

    ``name`` is the array, ``origin`` is named in errors. Other arrays are not checked here.
    """

    def __init__(self, name: str, origin: str) -> None:
        self._check = {"features": self._features, "weights": self._weights}.get(name)
        self._origin = origin
        self._rows = 0

    def __call__(self, piece: Array) -> None:
        """Raise ``DataError`` for the first value that is not finite, or a negative weight."""
        if self._check is not None and piece.ndim and piece.dtype.kind in "fiu":
            self._check(piece)
            self._rows += len(piece)

    def _features(self, piece: Array) -> None:
        if piece.dtype.kind != "f":
            return
        # A finite sum proves finite values; only another one needs the slow check.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(piece.sum(dtype=np.float64)):
                return
        wrong = np.argwhere(~np.isfinite(piece))
        if len(wrong):
            place = tuple(wrong[0])
            column = f", in column {place[1]}" if piece.ndim == 2 else ""
            raise DataError(
                f"{self._origin} has {piece[place]} for node {self._rows + place[0]}{column}; "
                "features are finite numbers: correct it"
            )

    def _weights(self, piece: Array) -> None:
        wrong = ~((piece >= 0) & (piece < np.inf))
        if wrong.any():
            edge = int(wrong.argmax())
            raise DataError(
                f"{self._origin} has {piece[edge]} at edge {self._rows + edge}; weights are finite "
                "numbers from 0 up: correct it"
            )


def count_rounded(source: Array, stored: Array) -> int:
    """Number of values that the conversion to a float type changed, NaN excepted."""
    if np.can_cast(source.dtype, stored.dtype, "safe") or stored.dtype.kind != "f":
        return 0
    if source.dtype.kind in "iu":  # compared as integers, since float64 would round both
        with np.errstate(invalid="ignore"):  # 2^63 and 2^64, which are rounded up
            return int(np.count_nonzero(stored.astype(source.dtype) != source))
    return int(np.count_nonzero((stored != source) & ~np.isnan(source)))
