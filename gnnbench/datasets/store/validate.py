"""Structural checks of a whole graph, in chunks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.layout import row_chunks
from gnnbench.schema.arrays import Array

T = TypeVar("T")
MakeError = Callable[[str], DataError]


def validate(
    name: str,
    arrays: Mapping[str, Array],
    num_classes: int,
    *,
    advice: str = "get the dataset again or correct its file",
) -> None:
    """Raise ``DataError`` for the first structural fault of a graph.

    ``arrays`` are those of the store (see ``Graph``), memory-mapped or not. Every index is checked,
    so that native code stays within the arrays; values of features and weights are checked when
    they are written. Isolated nodes, self-loops, parallel edges and unlabelled training nodes (-1)
    are valid, but at least one training node needs a label.
    """

    def error(problem: str) -> DataError:
        return DataError(f"{name}: {problem}; {advice}")

    indptr, indices = arrays["indptr"], arrays["indices"]
    if indptr.ndim != 1 or len(indptr) < 2:
        raise error("indptr must have one dimension and at least two entries")
    num_nodes = len(indptr) - 1
    check_indptr(indptr, len(indices), error)
    for low, high in _map_in_threads(_min_max, row_chunks(indices)):
        if low < 0 or high >= num_nodes:
            bad = low if low < 0 else high
            raise error(f"indices has node {bad}, outside 0..{num_nodes - 1}")

    features, labels = arrays["features"], arrays["labels"]
    if features.ndim != 2 or len(features) != num_nodes:
        raise error(f"features has shape {features.shape}, [{num_nodes}, width] is expected")
    _check_labels(labels, num_nodes, num_classes, error)
    weights = arrays.get("weights")
    if weights is not None and weights.shape != indices.shape:
        raise error(f"weights has shape {weights.shape}, [{len(indices)}] is expected")
    for split in ("train_idx", "val_idx", "test_idx"):
        _check_split(split, arrays[split], num_nodes, error)
    if len(arrays["train_idx"]) == 0:
        raise error("the training set is empty")
    if int(labels[arrays["train_idx"]].max()) < 0:
        raise error("no node of the training set has a label")


def check_indptr(indptr: Array, num_edges: int, error: MakeError) -> None:
    """Raise ``error``'s exception unless ``indptr`` rises from 0 to ``num_edges``."""
    if not len(indptr):
        raise error("indptr is empty")
    if int(indptr[0]) != 0:
        raise error(f"indptr starts with {int(indptr[0])} instead of 0")
    if int(indptr[-1]) != num_edges:
        raise error(f"indptr ends with {int(indptr[-1])}, but there are {num_edges} indices")
    ends = itertools.accumulate(len(chunk) for chunk in row_chunks(indptr))
    bounds = [max(end - 1, 0) for end in (0, *ends)]  # chunks overlap by one entry
    chunks = (indptr[first : last + 1] for first, last in itertools.pairwise(bounds))
    for first, fall in zip(bounds, _map_in_threads(_first_decrease, chunks), strict=False):
        if fall:
            raise error(f"indptr decreases at position {first + fall}")


def _first_decrease(chunk: Array) -> int:
    """Position of the first entry that is less than its predecessor; 0 if there is none."""
    falls = chunk[1:] < chunk[:-1]
    return int(falls.argmax()) + 1 if falls.any() else 0


def _min_max(chunk: Array) -> tuple[int, int]:
    return int(chunk.min()), int(chunk.max())


def _map_in_threads(function: Callable[[Array], T], chunks: Iterable[Array]) -> Iterator[T]:
    """Apply ``function`` to all chunks concurrently; yields the results in order."""
    listed = list(chunks)
    if len(listed) < 2:  # no threads for small graphs
        yield from map(function, listed)
        return
    with ThreadPoolExecutor() as pool:
        yield from pool.map(function, listed)


def _check_labels(labels: Array, num_nodes: int, num_classes: int, error: MakeError) -> None:
    if labels.shape != (num_nodes,):
        raise error(f"labels has shape {labels.shape}, [{num_nodes}] is expected")
    node = 0
    chunks = list(row_chunks(labels))
    for chunk, (low, high) in zip(chunks, _map_in_threads(_min_max, chunks), strict=True):
        if low < -1 or high >= num_classes:
            bad = low if low < -1 else high
            node += int((chunk == bad).argmax())
            raise error(f"labels has class {bad} for node {node}, outside -1..{num_classes - 1}")
        node += len(chunk)


def _check_split(split: str, ids: Array, num_nodes: int, error: MakeError) -> None:
    if ids.ndim != 1:
        raise error(f"{split} must have one dimension")
    if len(ids) == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_nodes:
        bad = low if low < 0 else high
        raise error(f"{split} has node {bad}, outside 0..{num_nodes - 1}")
    steps = np.diff(ids)
    if len(steps) and int(steps.min()) <= 0:
        repeated = (np.diff(np.sort(ids)) == 0).any()
        raise error(f"{split} {'lists a node twice' if repeated else 'is not sorted'}")
