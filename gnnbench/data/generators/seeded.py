"""Seeded stand-ins for what a source does not offer: features, labels, splits.

Random bits come from numpy's Philox bit generator (its raw stream is fixed by numpy's
compatibility policy; distributions are not, so none is used). Values are integers scaled by powers
of two, so that every machine gets the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

DEFAULT_WIDTH = 64
DEFAULT_CLASSES = 16
_ROWS_BYTES = 1 << 24


def _bits(seed: int, purpose: str) -> np.random.Philox:
    digest = hashlib.sha256(f"gnnbench {seed} {purpose}".encode()).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


def seeded_features(labels: np.ndarray, width: int, seed: int) -> Iterator[np.ndarray]:
    """Yield float32 row pieces ``[*, width]``: class centre plus noise.

    Every value is a multiple of 1/256: triangular noise in (-1, 1) plus -1/4, 0 or +1/4 by class
    and column, so a linear model separates the classes while single values do not. Unlabelled
    nodes get noise only.
    """
    noise = _bits(seed, "features")
    num_classes = max(int(labels.max(initial=-1)) + 1, 1)
    centres = (_bits(seed, "centres").random_raw(num_classes * width) % np.uint64(3)).astype(
        np.int16
    )
    centres = np.vstack([(centres.reshape(num_classes, width) - 1) * 64, np.zeros(width, np.int16)])
    words = -(-width // 4)  # a 64-bit word gives four values, two bytes each
    step = max(1, _ROWS_BYTES // (4 * width))
    for start in range(0, len(labels), step):
        piece = np.asarray(labels[start : start + step])
        raw = noise.random_raw(len(piece) * words).astype("<u8").view(np.uint8)
        pairs = raw.reshape(len(piece), words * 4, 2)[:, :width]
        values = pairs[:, :, 0].astype(np.int16)
        values += pairs[:, :, 1]
        values -= 255
        values += centres[piece]  # class -1 is the last row: zeros
        yield values.astype(np.float32) * np.float32(1 / 256)


def seeded_labels(num_nodes: int, num_classes: int, seed: int) -> Iterator[np.ndarray]:
    """Yield int64 pieces of uniform classes ``0..num_classes - 1``."""
    bits, step = _bits(seed, "labels"), 1 << 20
    for start in range(0, num_nodes, step):
        raw = bits.random_raw(min(step, num_nodes - start)) >> np.uint64(32)
        yield ((raw * np.uint64(num_classes)) >> np.uint64(32)).astype(np.int64)


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
