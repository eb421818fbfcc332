"""Check node ids, class numbers and split parts before they are stored."""

from __future__ import annotations

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.schema import MAX_CLASSES
from gnnbench.schema.arrays import Array

_INT64 = np.iinfo(np.int64)


def int64_ids(values: Array, origin: str) -> Array:
    """Integers of any width and byte order as int32 or int64 of this machine; a view where it can.

    Raises ``DataError``, which names ``origin``, for another type and for a value beyond int64.
    """
    if values.dtype.kind not in "iu":
        raise DataError(
            f"{origin} has type {values.dtype}, integers are expected; "
            "convert it, for example with .astype('int64')"
        )
    if values.dtype in (np.int32, np.int64) and values.dtype.isnative:
        return values
    if values.dtype.kind == "u" and values.dtype.itemsize == 8 and values.size:
        high = int(values.max())
        if high > _INT64.max:
            raise DataError(f"{origin} has the value {high}, beyond int64; correct it")
    return values.astype(np.int64)


def class_numbers(values: Array, num_nodes: int, origin: str) -> Array:
    """Labels as int64 ``[num_nodes]``, NaN as -1 (no label).

    ``values`` are integers, booleans or floats without a fraction, ``[num_nodes]`` or
    ``[num_nodes, 1]``. Raises ``DataError``, which names ``origin``, the node and the value, for
    anything but -1 and 0 to ``MAX_CLASSES`` - 1.
    """
    y = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if y.ndim != 1:
        raise DataError(
            f"{origin} has shape {y.shape}, one class a node is expected; choose one of several "
            "(multi-label graphs are not trained on)"
        )
    if len(y) != num_nodes:
        raise DataError(
            f"{origin} has {len(y)} entries, {num_nodes} are expected; correct the file or the"
            " graph"
        )
    if y.dtype.kind not in "fiub":
        raise DataError(f"{origin} has type {y.dtype}, integers are expected; correct it")
    if y.dtype.kind == "f":
        y = y.astype(np.float32) if y.dtype.itemsize < 4 else y  # a half is below MAX_CLASSES
        unlabelled = np.isnan(y)
        fractions = ~unlabelled & (y != np.floor(y))
        if fractions.any():
            node = int(fractions.argmax())
            raise DataError(
                f"{origin} has values that are not class numbers ({y[node]} of node {node}); "
                "correct them"
            )
        y = np.where(unlabelled, y.dtype.type(-1), y)
    wrong = y >= MAX_CLASSES
    if y.dtype.kind in "fi":
        wrong |= y < -1
    if wrong.any():
        node = int(wrong.argmax())
        value = y[node] if y.dtype.kind == "f" else int(y[node])
        advice = "set it to -1 where the node has no label" if value == -100 else "correct it"
        raise DataError(
            f"{origin} has {value} for node {node}, where -1 (no label) or a class from 0 to "
            f"{MAX_CLASSES - 1} is expected; {advice}"
        )
    return y.astype(np.int64)


def split_mask(values: Array, num_nodes: int, origin: str) -> Array:
    """Ids, int64 ascending, of the nodes that a mask ``[num_nodes]`` has True or 1 for.

    Raises ``DataError``, which names ``origin``, for other than booleans or integers 0 and 1.
    """
    if values.shape != (num_nodes,) or values.dtype.kind not in "biu":
        raise DataError(
            f"{origin}, a split mask, has type {values.dtype} and shape "
            f"{values.shape}, booleans [{num_nodes}] are expected; correct it"
        )
    if values.dtype.kind != "b":
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            node = int(wrong.argmax())
            raise DataError(
                f"{origin}, a split mask, has {int(values[node])} for node {node}, where 0 or 1 is "
                "expected; correct it, or name it _idx if it lists nodes"
            )
    return np.flatnonzero(values)


def looks_like_mask(values: Array, num_nodes: int) -> bool:
    """Whether an array without ``_idx`` or ``_mask`` in its name can only be a mask.

    Booleans are one. So are 8-bit integers 0 and 1, one a node, unless they list two nodes or less.
    """
    if values.dtype.kind == "b":
        return True
    small = values.dtype.kind in "iu" and values.dtype.itemsize == 1
    if not small or values.shape != (num_nodes,) or num_nodes <= 2:
        return False
    return bool(((values == 0) | (values == 1)).all())
