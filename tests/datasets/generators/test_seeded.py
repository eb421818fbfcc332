"""Seeded features, labels and splits: reproducible, and learnable by a model."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import torch

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.generators import seeded
from gnnbench.kernels.seeded import fill_features

LABELS = np.array([0, 1, 2, -1, 1] * 40)


def features(labels=LABELS, width: int = 10, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(seeded.seeded_features(labels, width, seed)))


def test_features_labels_and_split_are_pinned() -> None:
    digest = hashlib.sha256(features().astype("<f4").tobytes()).hexdigest()
    assert digest == "0951085f7829a7cf824c83023590b083c4cb4859268467f016a5f89bebaed715"
    labels = np.concatenate(list(seeded.seeded_labels(1000, 7, 3)))
    assert (
        hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()
        == "2c589e48441ff427388285cafaf15c54fd78f0a5ae648a0a3d01353d72723d1e"
    )
    train, val, test = seeded.seeded_split(10, 0)
    assert (train.tolist(), val.tolist(), test.tolist()) == ([1, 3, 4, 5, 8, 9], [6, 7], [0, 2])


def test_edge_weight_is_the_year_of_its_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    indices = np.arange(40_000, dtype=np.int32)[::-1] % 30_000
    weights = np.concatenate(list(seeded.seeded_weights(indices, 30_000, 5)))
    assert (weights.dtype, weights.shape) == (np.float32, indices.shape)
    assert hashlib.sha256(weights.astype("<f4").tobytes()).hexdigest() == (
        "b4c3bf0b1512f3a2e0af0d65527934dafb6698e7ad76916d19b8d4e2400c7a80"
    )
    for first, second in ((0, 30_000), (9_999, 39_999)):  # the same neighbour
        assert indices[first] == indices[second] and weights[first] == weights[second]
    years, counts = np.unique(weights, return_counts=True)
    assert years.tolist() == list(range(1, seeded.YEARS + 1))
    assert np.abs(counts - 40_000 / seeded.YEARS).max() < 6 * 50  # standard deviations of a count
    monkeypatch.setattr(seeded, "_EDGES", 7)
    assert np.array_equal(weights, np.concatenate(list(seeded.seeded_weights(indices, 30_000, 5))))
    other = np.concatenate(list(seeded.seeded_weights(indices, 30_000, 6)))
    assert not np.array_equal(weights, other)


@pytest.mark.parametrize("rows_bytes", [1, 100, 4096])
def test_features_do_not_depend_on_the_chunk_size(
    monkeypatch: pytest.MonkeyPatch, rows_bytes: int
) -> None:
    whole = features()
    monkeypatch.setattr(seeded, "_ROWS_BYTES", rows_bytes)
    assert np.array_equal(features(), whole)


@pytest.mark.parametrize("width", [1, 3, 4, 5, 64, 127, 128, 300])
@pytest.mark.parametrize("seed", [0, 9])
def test_native_features_equal_numpy(width: int, seed: int) -> None:
    labels = np.resize(LABELS, 3001)
    table = seeded.SeededFeatures(labels, width, seed)
    for first, count in ((0, 3001), (1, 1), (2, 1000), (2999, 2), (3001, 0)):
        out = torch.full((count, width), torch.nan)
        fill_features(table.key, *map(torch.from_numpy, (labels, table.centres)), first, out)
        assert np.array_equal(out.numpy(), table.rows(first, count))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"first": 199}, UsageError, "out has 2 rows, from row 199 on; the graph has 200 nodes"),
        ({"out": torch.empty(2, 9)}, UsageError, "centres must have one row of 9 values"),
        ({"out": torch.empty(2, 0)}, UsageError, "at least one column"),
        ({"out": torch.empty(2, 10).double()}, UsageError, "out must be float32"),
        ({"labels": torch.full((2,), 3)}, DataError, "outside -1..2"),
        ({"labels": torch.full((2,), -2)}, DataError, "outside -1..2"),
    ],
)
def test_invalid_fill_arguments_are_refused(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    table = seeded.SeededFeatures(LABELS, 10, 0)
    labels, centres = torch.from_numpy(LABELS), torch.from_numpy(table.centres)
    good = {"key": 1, "labels": labels, "centres": centres, "first": 0, "out": torch.empty(2, 10)}
    with pytest.raises(error, match=message):
        fill_features(**{**good, **changes})


def test_values_are_exact_and_bounded() -> None:
    values = features()
    assert values.dtype == np.float32
    assert values.shape == (200, 10)
    assert np.array_equal(values * 256, np.round(values * 256))
    assert float(np.abs(values).max()) <= 255 / 256 + 0.25


def test_nearest_centre_separates_the_classes() -> None:
    labels = np.arange(2000) % 4
    values = features(labels, 64)
    centres = np.stack([values[labels == k].mean(0) for k in range(4)])
    nearest = ((values[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == labels).mean() > 0.9


def test_labels_do_not_depend_on_the_chunk_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = np.concatenate(list(seeded.seeded_labels(1001, 5, 2)))
    monkeypatch.setattr(seeded, "_LABELS", 8)
    pieces = list(seeded.seeded_labels(1001, 5, 2))
    assert len(pieces) == 126 and np.array_equal(np.concatenate(pieces), whole)


def test_labels_have_every_class_and_splits_every_node() -> None:
    labels = np.concatenate(list(seeded.seeded_labels(5000, 7, 0)))
    assert set(labels.tolist()) == set(range(7))
    parts = seeded.seeded_split(101, 2)
    assert [len(p) for p in parts] == [60, 20, 21]
    assert sorted(np.concatenate(parts).tolist()) == list(range(101))
    assert [len(p) for p in seeded.seeded_split(1, 0)] == [1, 0, 0]
