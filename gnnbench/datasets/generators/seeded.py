"""Seeded stand-ins for features, labels, splits and edge weights that a source lacks.

Random bits come from numpy's Philox bit generator (its raw stream is fixed by numpy's
compatibility policy; distributions are not, so none is used). Values are integers scaled by powers
of two, so that every machine gets the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from gnnbench.datasets.generators.parallel import compute_ahead
from gnnbench.schema.arrays import Array

WEIGHTS_VERSION = 1  # to be incremented with any change of the bits
YEARS = 16
DEFAULT_WIDTH = 64
DEFAULT_CLASSES = 16
_ROWS_BYTES = 1 << 24
_LABELS = 1 << 20
_EDGES = 1 << 22
_THREADS = 4  # numpy's generators release the GIL


def _key(seed: int, purpose: str) -> int:
    digest = hashlib.sha256(f"gnnbench {seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:16], "little")


def _bits(seed: int, purpose: str) -> np.random.Philox:
    return np.random.Philox(key=_key(seed, purpose))


class SeededFeatures:
    """float32 rows ``[len(labels), width]``: class centre plus noise, any rows by themselves.

    Every value is a multiple of 1/256: triangular noise in (-1, 1) plus -1/4, 0 or +1/4 by class
    and column, so a linear model separates the classes while single values do not. Unlabelled
    nodes get noise only. ``gnnbench.kernels.seeded`` generates the same bits natively from ``key``
    and ``centres`` (int16 ``[classes + 1, width]``, in 1/256).
    """

    def __init__(self, labels: Array, width: int, seed: int) -> None:
        self._labels, self._width = labels, width
        self.key = _key(seed, "features")
        num_classes = max(int(labels.max(initial=-1)) + 1, 1)
        signs = _bits(seed, "centres").random_raw(num_classes * width) % np.uint64(3)
        centres = (signs.astype(np.int16).reshape(num_classes, width) - 1) * 64
        self.centres = np.vstack([centres, np.zeros(width, np.int16)])

    def rows(self, first: int, count: int) -> Array:
        """Rows ``first`` to ``first + count``."""
        width, labels = self._width, np.asarray(self._labels[first : first + count])
        row_words = -(-width // 4)  # a 64-bit word gives four values of two bytes each
        noise = np.random.Philox(key=self.key)
        noise.advance(first * row_words // 4)  # by blocks of four words
        noise.random_raw(first * row_words % 4)
        raw = noise.random_raw(len(labels) * row_words).astype("<u8", copy=False).view(np.uint8)
        pairs = raw.reshape(len(labels), row_words * 4, 2)[:, :width]
        values = pairs[:, :, 0].astype(np.int16)
        values += pairs[:, :, 1]
        values -= 255
        values += self.centres[labels]  # class -1 selects the last row, which is zero
        return values.astype(np.float32) * np.float32(1 / 256)


def seeded_features(labels: Array, width: int, seed: int) -> Iterator[Array]:
    """Yield all rows of :class:`SeededFeatures` in chunks ``[*, width]``."""
    features, step = SeededFeatures(labels, width, seed), max(1, _ROWS_BYTES // (4 * width))
    starts = range(0, len(labels), step)
    return compute_ahead((partial(features.rows, start, step) for start in starts), _THREADS)


def seeded_labels(num_nodes: int, num_classes: int, seed: int) -> Iterator[Array]:
    """Yield uniform classes ``0..num_classes - 1`` in int64 chunks."""

    def chunk(start: int) -> Array:
        bits = _bits(seed, "labels")
        bits.advance(start // 4)  # by blocks of four words
        raw = bits.random_raw(min(_LABELS, num_nodes - start)) >> np.uint64(32)
        return ((raw * np.uint64(num_classes)) >> np.uint64(32)).astype(np.int64)

    return compute_ahead(
        (partial(chunk, start) for start in range(0, num_nodes, _LABELS)), _THREADS
    )


def seeded_weights(indices: Array, num_nodes: int, seed: int) -> Iterator[Array]:
    """Yield edge weights 1, 2 ... ``YEARS`` in the order of ``indices``, in float32 chunks.

    The weight of an edge is the year of its neighbour, so newer nodes are sampled more often, as in
    GNNLab (EuroSys 2022, section 3), whose weights are the years in which users registered. Years
    are uniform, since GNNLab does not state their distribution.
    """
    raw = _bits(seed, "years").random_raw(num_nodes) >> np.uint64(32)
    years = ((raw * np.uint64(YEARS)) >> np.uint64(32)).astype(np.float32) + np.float32(1)

    def chunk(start: int) -> Array:
        return years[indices[start : start + _EDGES]]

    return compute_ahead(
        (partial(chunk, start) for start in range(0, len(indices), _EDGES)), _THREADS
    )


def seeded_split(
    num_nodes: int, seed: int, train: float = 0.6, val: float = 0.2
) -> tuple[Array, Array, Array]:
    """Random split of all nodes into sorted int64 training, validation and test indices."""
    first = max(1, int(num_nodes * train))
    second = int(num_nodes * val)
    return seeded_split_of(num_nodes, seed, first, second, num_nodes)


def seeded_split_of(
    num_nodes: int, seed: int, train: int, val: int, test: int
) -> tuple[Array, Array, Array]:
    """As :func:`seeded_split`, with given sizes; the last parts are shorter if nodes run out."""
    order = np.argsort(_bits(seed, "split").random_raw(num_nodes), kind="stable")
    first, second = train, train + val
    parts = order[:first], order[first:second], order[second : second + test]
    return np.sort(parts[0]), np.sort(parts[1]), np.sort(parts[2])
