"""Seeded stand-ins for what a source does not offer: features, labels, splits, edges' weights.

Random bits come from numpy's Philox bit generator (its raw stream is fixed by numpy's
compatibility policy; distributions are not, so none is used). Values are integers scaled by powers
of two, so that every machine gets the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from gnnbench.datasets.generators.parallel import ahead

WEIGHTS_VERSION = 1  # another one may give other bits
YEARS = 16
DEFAULT_WIDTH = 64
DEFAULT_CLASSES = 16
_ROWS_BYTES = 1 << 24
_LABELS = 1 << 20
_EDGES = 1 << 22
_THREADS = 4  # numpy draws without holding up the others


def _key(seed: int, purpose: str) -> int:
    digest = hashlib.sha256(f"gnnbench {seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:16], "little")


def _bits(seed: int, purpose: str) -> np.random.Philox:
    return np.random.Philox(key=_key(seed, purpose))


class SeededFeatures:
    """float32 rows ``[len(labels), width]``: class centre plus noise, any rows by themselves.

    Every value is a multiple of 1/256: triangular noise in (-1, 1) plus -1/4, 0 or +1/4 by class
    and column, so a linear model separates the classes while single values do not. Unlabelled
    nodes get noise only. ``gnnbench.kernels.seeded`` makes the same bits natively, from the
    ``key`` and
    the ``centres``, int16 ``[classes + 1, width]`` in 1/256.
    """

    def __init__(self, labels: np.ndarray, width: int, seed: int) -> None:
        self._labels, self._width = labels, width
        self.key = _key(seed, "features")
        num_classes = max(int(labels.max(initial=-1)) + 1, 1)
        drawn = _bits(seed, "centres").random_raw(num_classes * width) % np.uint64(3)
        centres = (drawn.astype(np.int16).reshape(num_classes, width) - 1) * 64
        self.centres = np.vstack([centres, np.zeros(width, np.int16)])

    def rows(self, first: int, count: int) -> np.ndarray:
        """Rows ``first`` to ``first + count``."""
        width, piece = self._width, np.asarray(self._labels[first : first + count])
        words = -(-width // 4)  # a 64-bit word gives four values, two bytes each
        noise = np.random.Philox(key=self.key)
        noise.advance(first * words // 4)  # by blocks of four words
        noise.random_raw(first * words % 4)
        raw = noise.random_raw(len(piece) * words).astype("<u8", copy=False).view(np.uint8)
        pairs = raw.reshape(len(piece), words * 4, 2)[:, :width]
        values = pairs[:, :, 0].astype(np.int16)
        values += pairs[:, :, 1]
        values -= 255
        values += self.centres[piece]  # class -1 is the last row: zeros
        scaled: np.ndarray = values.astype(np.float32) * np.float32(1 / 256)
        return scaled


def seeded_features(labels: np.ndarray, width: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the rows of :class:`SeededFeatures` from top to bottom, in pieces ``[*, width]``."""
    features, step = SeededFeatures(labels, width, seed), max(1, _ROWS_BYTES // (4 * width))
    starts = range(0, len(labels), step)
    return ahead((partial(features.rows, start, step) for start in starts), _THREADS)


def seeded_labels(num_nodes: int, num_classes: int, seed: int) -> Iterator[np.ndarray]:
    """Yield int64 pieces of uniform classes ``0..num_classes - 1``."""

    def piece(start: int) -> np.ndarray:
        bits = _bits(seed, "labels")
        bits.advance(start // 4)  # by blocks of four words
        raw = bits.random_raw(min(_LABELS, num_nodes - start)) >> np.uint64(32)
        return ((raw * np.uint64(num_classes)) >> np.uint64(32)).astype(np.int64)

    return ahead((partial(piece, start) for start in range(0, num_nodes, _LABELS)), _THREADS)


def seeded_weights(indices: np.ndarray, num_nodes: int, seed: int) -> Iterator[np.ndarray]:
    """Yield weights of edges in the order of ``indices``, float32 pieces of 1, 2 ... ``YEARS``.

    An edge weighs what its neighbour's year is, which is drawn for each node, all years alike: the
    newer a node, the more often it is picked, as GNNLab (EuroSys 2022, section 3) has its weights
    from the years in which users registered. How these are spread it does not say.
    """
    raw = _bits(seed, "years").random_raw(num_nodes) >> np.uint64(32)
    years = ((raw * np.uint64(YEARS)) >> np.uint64(32)).astype(np.float32) + np.float32(1)

    def piece(start: int) -> np.ndarray:
        return years[indices[start : start + _EDGES]]

    return ahead((partial(piece, start) for start in range(0, len(indices), _EDGES)), _THREADS)


def seeded_split(
    num_nodes: int, seed: int, train: float = 0.6, val: float = 0.2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random split of all nodes: sorted int64 train, validation and test indices."""
    first = max(1, int(num_nodes * train))
    second = int(num_nodes * val)
    return seeded_split_of(num_nodes, seed, first, second, num_nodes)


def seeded_split_of(
    num_nodes: int, seed: int, train: int, val: int, test: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random split with these numbers of nodes (fewer where they run out), as `seeded_split`."""
    order = np.argsort(_bits(seed, "split").random_raw(num_nodes), kind="stable")
    first, second = train, train + val
    parts = order[:first], order[first:second], order[second : second + test]
    return np.sort(parts[0]), np.sort(parts[1]), np.sort(parts[2])
