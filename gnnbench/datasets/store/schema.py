"""Check the values of ``meta.json`` before anything relies on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_COUNTS = ("num_nodes", "num_edges", "feature_dim", "num_classes", "train", "val", "test")
_TEXTS = ("name", "created_by", "source", "licence", "features", "labels", "split", "weights")
_LISTS = ("notes", "assumed")
MAX_CLASSES = 100_000
"""Most classes of a graph: a classifier and seeded features have a row for each of them."""
_LARGEST = 1 << 48  # no count of a graph, and no array has as many elements


def check_meta(meta: Mapping[str, Any], dtypes: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ``ValueError`` with a sentence about the first key of the wrong type or size.

    ``dtypes`` are the arrays that a graph can have and the types that each may have.
    """
    for key in _COUNTS:
        if not _is_count(meta.get(key)):
            raise ValueError(f"'{key}' is {_shown(meta.get(key))}, a whole number is expected")
    if meta["num_classes"] > MAX_CLASSES:
        raise ValueError(f"'num_classes' is {meta['num_classes']}, {MAX_CLASSES} at most is right")
    if meta["num_nodes"] < 1:
        raise ValueError("'num_nodes' is 0, a graph has a node")
    for key in ("name", "created_by", "licence"):
        if key not in meta:
            raise ValueError(f"'{key}' is missing")
    for key in _TEXTS:
        if not isinstance(meta.get(key, ""), str):
            raise ValueError(f"'{key}' is {_shown(meta[key])}, a text is expected")
    for key in _LISTS:
        values = meta.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"'{key}' is {_shown(values)}, a list of texts is expected")
    if not isinstance(meta.get("symmetric"), bool):
        raise ValueError(f"'symmetric' is {_shown(meta.get('symmetric'))}, true or false is right")
    for key in ("fingerprint", "arrays"):
        if not isinstance(meta.get(key), dict):
            raise ValueError(f"'{key}' is {_shown(meta.get(key))}, an object is expected")
    for array, entry in meta["arrays"].items():
        if array not in dtypes:
            raise ValueError(f"'arrays' has {_shown(array)}, which no graph has")
        _check_entry(array, entry, dtypes[array])


def _check_entry(array: str, entry: Any, dtypes: tuple[str, ...]) -> None:
    def wrong(what: str) -> ValueError:
        return ValueError(f"the entry of array '{array}' {what}")

    if not isinstance(entry, dict):
        raise wrong(f"is {_shown(entry)}, an object is expected")
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str) or dtype not in dtypes:
        raise wrong(f"has the type {_shown(dtype)}, {' or '.join(dtypes)} is expected")
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or not all(map(_is_count, shape)):
        raise wrong(f"has the shape {_shown(shape)}, one or two whole numbers are expected")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= _LARGEST * 8 or entry.get("bytes") != size:
        raise wrong(f"has {_shown(entry.get('bytes'))} bytes for the shape {_shown(shape)}")
    keys = ("made",) if "made" in entry else ("file", "sha256")
    for key in keys:
        if not isinstance(entry.get(key), str):
            raise wrong(f"has no text '{key}'")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _shown(value: Any) -> str:
    """A value on one line, cut short; nothing of it is formatted that could be large."""
    if isinstance(value, dict | list):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of many digits"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
