"""The contents of ``meta.json``, and checks of its values before they are used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

Fingerprint = Mapping[str, object]
"""Identifies how a graph was made. Values are opaque: they are stored as JSON and compared."""


class ArrayLayout(TypedDict):
    """Layout of one array of a graph; ``bytes`` is its size."""

    dtype: str
    shape: list[int]
    bytes: int


class ArrayEntry(ArrayLayout, total=False):
    """One array of a graph: a ``file`` with its ``sha256``, or a generator (``made``)."""

    file: str
    sha256: str
    made: str


class Provenance(TypedDict, total=False):
    """Where a graph comes from.

    ``symmetric`` None: to be determined from the edges. ``split`` says where the split comes from,
    ``assumed`` names unpublished properties.
    """

    source: str
    loader: str
    licence: str
    symmetric: bool | None
    split: str
    seed: int
    notes: list[str]
    assumed: list[str]
    recipe: dict[str, object]


class GraphDescription(Provenance, total=False):
    """What an importer or a generator reports about a graph, besides its arrays.

    ``features``, ``labels`` and ``weights`` say where these come from.
    """

    features: str
    labels: str
    weights: str


class NewGraph(GraphDescription):
    """A description with the number of classes, as :meth:`GraphWriter.finish` takes it."""

    num_classes: int


class GraphMeta(GraphDescription, total=False):
    """The whole ``meta.json``; empty for a graph in memory."""

    format: str
    format_version: int
    created_by: str
    name: str
    num_nodes: int
    num_edges: int
    feature_dim: int
    num_classes: int
    train: int
    val: int
    test: int
    fingerprint: dict[str, object]
    arrays: dict[str, ArrayEntry]
    meta_sha256: str


_COUNTS = ("num_nodes", "num_edges", "feature_dim", "num_classes", "train", "val", "test")
_TEXTS = ("name", "created_by", "source", "licence", "features", "labels", "split", "weights")
_LISTS = ("notes", "assumed")
MAX_CLASSES = 100_000
"""Largest number of classes: a classifier and seeded features have one row per class."""
_LARGEST = 1 << 48  # exclusive bound of counts and of an array's elements


def check_meta(meta: Mapping[str, object], dtypes: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ``ValueError`` for the first key of a wrong type or size.

    ``dtypes`` has the arrays that a graph can have and the types that each may have.
    """
    for key in _COUNTS:
        if not _is_count(meta.get(key)):
            raise ValueError(f"'{key}' is {_shown(meta.get(key))}, a whole number is expected")
    classes = meta["num_classes"]
    if isinstance(classes, int) and classes > MAX_CLASSES:
        raise ValueError(f"'num_classes' is {classes}, the maximum is {MAX_CLASSES}")
    if meta["num_nodes"] == 0:
        raise ValueError("'num_nodes' is 0, a graph has at least one node")
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
        raise ValueError(f"'symmetric' is {_shown(meta.get('symmetric'))}, not true or false")
    if not isinstance(meta.get("fingerprint"), dict):
        raise ValueError(f"'fingerprint' is {_shown(meta.get('fingerprint'))}, not an object")
    arrays = meta.get("arrays")
    if not isinstance(arrays, dict):
        raise ValueError(f"'arrays' is {_shown(arrays)}, an object is expected")
    for array, entry in arrays.items():
        if array not in dtypes:
            raise ValueError(f"'arrays' has the unknown array {_shown(array)}")
        _check_entry(array, entry, dtypes[array])


def _check_entry(array: str, entry: object, dtypes: tuple[str, ...]) -> None:
    def error(problem: str) -> ValueError:
        return ValueError(f"the entry of array '{array}' {problem}")

    if not isinstance(entry, dict):
        raise error(f"is {_shown(entry)}, an object is expected")
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str) or dtype not in dtypes:
        raise error(f"has the type {_shown(dtype)}, {' or '.join(dtypes)} is expected")
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or not all(map(_is_count, shape)):
        raise error(f"has the shape {_shown(shape)}, one or two whole numbers are expected")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= _LARGEST * 8 or entry.get("bytes") != size:
        raise error(f"has {_shown(entry.get('bytes'))} bytes for the shape {_shown(shape)}")
    for key in ("made",) if "made" in entry else ("file", "sha256"):
        if not isinstance(entry.get(key), str):
            raise error(f"has no text '{key}'")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _shown(value: object) -> str:
    """A value on one line of at most 40 characters; large values are not formatted."""
    if isinstance(value, dict | list):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of many digits"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
