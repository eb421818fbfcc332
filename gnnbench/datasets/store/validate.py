"""Checks of a whole graph, in pieces, taken once when a dataset is prepared."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.layout import row_chunks

T = TypeVar("T")


def validate(
    name: str,
    arrays: Mapping[str, np.ndarray],
    num_classes: int,
    *,
    contents_of_features: bool = True,
    advice: str = "get the dataset again or correct its file",
) -> None:
    """Raise ``DataError`` with one sentence for the first thing that is wrong.

    ``arrays`` are those of the store (see ``Graph``); they may be memory-mapped, they are read in
    pieces. Isolated nodes, self-loops, parallel edges and training nodes without a label (-1) are
    valid, as long as one training node has a label. Without
    ``contents_of_features`` it is cheap, and makes sure that native code stays within the arrays.
    """

    def wrong(what: str) -> DataError:
        return DataError(f"{name}: {what}; {advice}")

    indptr, indices = arrays["indptr"], arrays["indices"]
    if indptr.ndim != 1 or len(indptr) < 2:
        raise wrong("indptr must have one dimension and at least two entries")
    num_nodes = len(indptr) - 1
    check_indptr(indptr, len(indices), wrong)
    for low, high in _in_threads(_range, row_chunks(indices)):
        if low < 0 or high >= num_nodes:
            bad = low if low < 0 else high
            raise wrong(f"indices has node {bad}, outside 0..{num_nodes - 1}")

    features, labels = arrays["features"], arrays["labels"]
    if features.ndim != 2 or len(features) != num_nodes:
        raise wrong(f"features has shape {features.shape}, [{num_nodes}, width] is expected")
    row = 0
    for piece in row_chunks(features) if contents_of_features else ():
        # A sum is finite unless a value is not (or the sum overflows): the slow look is rare.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(piece.sum(dtype=np.float64))
        if suspicious:
            bad_rows = np.flatnonzero(~np.isfinite(piece).all(axis=1))
            if len(bad_rows):
                raise wrong(f"features has NaN or infinity in the row of node {row + bad_rows[0]}")
        row += len(piece)
    if labels.shape != (num_nodes,):
        raise wrong(f"labels has shape {labels.shape}, [{num_nodes}] is expected")
    node = 0
    pieces = list(row_chunks(labels))
    for piece, (low, high) in zip(pieces, _in_threads(_range, pieces), strict=True):
        if low < -1 or high >= num_classes:
            bad = low if low < -1 else high
            node += int((piece == bad).argmax())
            raise wrong(f"labels has class {bad} for node {node}, outside -1..{num_classes - 1}")
        node += len(piece)
    if "weights" in arrays and contents_of_features:
        _check_weights(arrays["weights"], len(indices), wrong)
    for split in ("train_idx", "val_idx", "test_idx"):
        _check_split(split, arrays[split], num_nodes, wrong)
    if len(arrays["train_idx"]) == 0:
        raise wrong("the training set is empty")
    if int(labels[arrays["train_idx"]].max()) < 0:
        raise wrong("no node of the training set has a label")


def check_indptr(indptr: np.ndarray, num_edges: int, wrong: Callable[[str], DataError]) -> None:
    """Raise ``wrong``'s error unless ``indptr`` goes from 0 to ``num_edges`` without a fall."""
    if not len(indptr):
        raise wrong("indptr is empty")
    if int(indptr[0]) != 0:
        raise wrong(f"indptr starts with {int(indptr[0])} instead of 0")
    if int(indptr[-1]) != num_edges:
        raise wrong(f"indptr ends with {int(indptr[-1])}, but there are {num_edges} indices")
    ends = itertools.accumulate(len(piece) for piece in row_chunks(indptr))
    bounds = [max(end - 1, 0) for end in (0, *ends)]  # a piece begins with the last one's end
    pieces = (indptr[first : last + 1] for first, last in itertools.pairwise(bounds))
    for first, fall in zip(bounds, _in_threads(_first_fall, pieces), strict=False):
        if fall:
            raise wrong(f"indptr decreases at position {first + fall}")


def _first_fall(piece: np.ndarray) -> int:
    """Position of the first entry below the one before it; 0 where there is none."""
    falls = piece[1:] < piece[:-1]
    return int(falls.argmax()) + 1 if falls.any() else 0


def _range(piece: np.ndarray) -> tuple[int, int]:
    return int(piece.min()), int(piece.max())


def _in_threads(look: Callable[[np.ndarray], T], pieces: Iterable[np.ndarray]) -> Iterator[T]:
    """What ``look`` says of each piece, in order; of several pieces at once."""
    several = list(pieces)
    if len(several) < 2:  # small graphs are many
        yield from map(look, several)
        return
    with ThreadPoolExecutor() as pool:
        yield from pool.map(look, several)


def _check_weights(weights: np.ndarray, num_edges: int, wrong) -> None:  # type: ignore[no-untyped-def]
    if weights.shape != (num_edges,):
        raise wrong(f"weights has shape {weights.shape}, [{num_edges}] is expected")
    edge = 0
    for piece in row_chunks(weights):
        # A NaN is the least and the most of its piece.
        if not (piece.min() >= 0 and piece.max() < np.inf):
            bad = int(np.argmax(~((piece >= 0) & (piece < np.inf))))
            raise wrong(
                f"weights has {piece[bad]} at edge {edge + bad}, a finite number from 0 up is right"
            )
        edge += len(piece)


def _check_split(split: str, ids: np.ndarray, num_nodes: int, wrong) -> None:  # type: ignore[no-untyped-def]
    if ids.ndim != 1:
        raise wrong(f"{split} must have one dimension")
    if len(ids) == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_nodes:
        bad = low if low < 0 else high
        raise wrong(f"{split} has node {bad}, outside 0..{num_nodes - 1}")
    steps = np.diff(ids)
    if len(steps) and int(steps.min()) <= 0:
        what = "lists a node twice" if (np.diff(np.sort(ids)) == 0).any() else "is not sorted"
        raise wrong(f"{split} {what}")
