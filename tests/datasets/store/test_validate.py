"""Every malformed graph is refused with one sentence that names what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnbench.core.errors import DataError
from gnnbench.datasets.store.arrays import write_graph
from gnnbench.datasets.store.reader import open_graph
from gnnbench.datasets.store.validate import validate


def with_value(array: np.ndarray, position, value) -> np.ndarray:
    changed = array.copy()
    changed[position] = value
    return changed


MALFORMED = [
    ("indptr", lambda a: with_value(a, 2, 9), "indptr decreases at position 3"),
    ("indptr", lambda a: with_value(a, 0, 1), "indptr starts with 1 instead of 0"),
    ("indptr", lambda a: with_value(a, 5, 8), "indptr ends with 8, but there are 7 indices"),
    ("indptr", lambda a: a.astype(float), "type float64, int64 is expected"),
    ("indices", lambda a: with_value(a, 3, 5), r"indices has node 5, outside 0\.\.4"),
    ("indices", lambda a: with_value(a, 0, -1), r"indices has node -1, outside 0\.\.4"),
    ("indices", lambda a: a[:-1], "indptr ends with 7, but there are 6 indices"),
    ("indices", lambda a: a.astype(np.float32), "type float32"),
    (
        "features",
        lambda a: with_value(a, (2, 1), np.nan),
        "'features' has nan for node 2, in column 1",
    ),
    (
        "features",
        lambda a: with_value(a, (4, 0), np.inf),
        "'features' has inf for node 4, in column 0",
    ),
    (
        "features",
        lambda a: with_value(a.astype(float), (1, 0), 1e99),
        r"value 1e\+99, beyond float",
    ),
    ("features", lambda a: a[:-1], "4 rows instead of 5"),
    ("features", lambda a: a[:, 0], "two dimensions"),
    ("features", lambda a: a.astype(str), "type <U"),
    ("labels", lambda a: with_value(a, 0, 3), r"class 3 for node 0, outside -1\.\.2"),
    ("labels", lambda a: with_value(a, 4, -2), r"labels has class -2 for node 4"),
    ("labels", lambda a: a[:-1], "4 rows instead of 5"),
    ("labels", lambda a: a.astype(float), "type float64"),
    ("train_idx", lambda a: a[:0], "the training set is empty"),
    ("train_idx", lambda a: with_value(a, 2, 5), r"train_idx has node 5, outside 0\.\.4"),
    ("train_idx", lambda a: with_value(a, 0, -1), "train_idx has node -1"),
    ("train_idx", lambda a: with_value(a, 1, 0), "train_idx lists a node twice"),
    ("train_idx", lambda a: a[:1] + 3, "no node of the training set has a label"),
    ("val_idx", lambda a: a + 9, "val_idx has node 10"),
    ("test_idx", lambda a: np.array([2**40]), "test_idx has node"),
]


@pytest.mark.parametrize(("key", "change", "message"), MALFORMED)
def test_malformed_graphs_are_refused(
    tmp_path: Path, arrays, key: str, change, message: str
) -> None:
    arrays[key] = change(arrays[key])
    with pytest.raises(DataError, match=message) as caught:
        write_graph(tmp_path / "g", name="tiny", num_classes=3, **arrays)
    assert caught.value.exit_code == 6
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "g").exists()
    assert not list(tmp_path.glob(".g.partial"))


def test_isolated_nodes_self_loops_and_parallel_edges_are_valid(arrays) -> None:
    """The tiny graph has them."""
    validate("tiny", arrays, 3)


def test_training_nodes_may_have_no_label(tmp_path: Path, arrays) -> None:
    arrays["train_idx"] = np.array([0, 2, 3])  # node 3 has the label -1
    graph = open_graph(write_graph(tmp_path / "g", name="tiny", num_classes=3, **arrays))
    assert graph.train_idx.tolist() == [0, 2, 3]
    assert graph.meta["notes"] == [
        "nodes in train and in test: 1, kept in both",
        "training nodes without a label, which no loss counts: 1 of 3",
    ]


def test_rounded_values_are_reported(tmp_path: Path, arrays) -> None:
    exact = {**arrays, "features": arrays["features"].astype(np.float64)}
    graph = open_graph(write_graph(tmp_path / "exact", name="tiny", num_classes=3, **exact))
    assert "notes" not in graph.meta
    arrays["features"] = with_value(arrays["features"].astype(np.float64), (1, 0), 0.1)
    arrays["weights"] = with_value(np.ones(7, np.int64), 2, 2**24 + 1)
    graph = open_graph(write_graph(tmp_path / "g", name="tiny", num_classes=3, **arrays))
    assert graph.meta["notes"] == [
        "features rounded from float64 to float32: 1 values",
        "weights rounded from int64 to float32: 1 values",
    ]
    arrays["features"] = with_value(arrays["features"].astype(np.int64), (1, 0), 2**60 + 1)
    del arrays["weights"]
    graph = open_graph(write_graph(tmp_path / "i", name="tiny", num_classes=3, **arrays))
    assert graph.meta["notes"] == ["features rounded from int64 to float32: 1 values"]


def test_weights_that_round_to_zero_are_refused(tmp_path: Path, arrays) -> None:
    arrays["weights"] = np.array([0, 1e-60, 2e-60, 1, 1, 1, 1])
    with pytest.raises(DataError, match=r"value 1e-60, which float32 rounds to 0; multiply all"):
        write_graph(tmp_path / "g", name="tiny", num_classes=3, **arrays)
    arrays["weights"] = np.array([0, 1e-30, 2e-30, 1, 1, 1, 1])
    graph = open_graph(write_graph(tmp_path / "g", name="tiny", num_classes=3, **arrays))
    assert graph.weights is not None
    assert graph.weights.tolist() == arrays["weights"].astype(np.float32).tolist()


def test_graph_without_nodes_is_refused(arrays) -> None:
    with pytest.raises(DataError, match="at least two entries"):
        validate("tiny", {**arrays, "indptr": np.zeros(1, np.int64)}, 3)


def test_unsorted_splits_are_refused(arrays) -> None:
    arrays["train_idx"] = np.array([2, 0])
    with pytest.raises(DataError, match="train_idx is not sorted"):
        validate("tiny", arrays, 3)


def test_fault_in_a_later_chunk_is_found(
    monkeypatch: pytest.MonkeyPatch, arrays, tmp_path: Path
) -> None:
    monkeypatch.setattr("gnnbench.datasets.store.layout.CHUNK_BYTES", 16)
    rows = np.zeros((5, 3), np.float32)
    rows[4, 2] = -np.inf
    weights = np.array([0, 1, 2, 3, 4, 5, -1], np.int64)
    for change, message in (
        ({"features": rows}, "'features' has -inf for node 4, in column 2"),
        ({"weights": weights}, "'weights' has -1 at edge 6; weights are finite"),
        ({"weights": np.where(weights < 0, np.nan, 1)}, "'weights' has nan at edge 6"),
    ):
        with pytest.raises(DataError, match=message):
            write_graph(tmp_path / "g", name="tiny", num_classes=3, **{**arrays, **change})


@pytest.mark.parametrize("chunk", [8, 16, 24, 1 << 24])
@pytest.mark.parametrize(
    ("position", "indptr"),
    [
        (1, [0, -1, 3, 5, 6, 7]),
        (2, [0, 2, 1, 5, 6, 7]),
        (3, [0, 2, 3, 2, 6, 7]),
        (4, [0, 2, 3, 5, 4, 7]),
        (5, [0, 2, 3, 5, 8, 7]),
    ],
)
def test_decreasing_indptr_is_found_for_any_chunk_size(
    monkeypatch: pytest.MonkeyPatch, arrays, chunk: int, position: int, indptr: list[int]
) -> None:
    monkeypatch.setattr("gnnbench.datasets.store.layout.CHUNK_BYTES", chunk)
    validate("tiny", arrays, 3)
    with pytest.raises(DataError, match=f"indptr decreases at position {position};"):
        validate("tiny", {**arrays, "indptr": np.array(indptr)}, 3)


@pytest.mark.parametrize("array", ["indices", "labels"])
def test_values_out_of_range_are_found_in_any_chunk(
    monkeypatch: pytest.MonkeyPatch, arrays, array: str
) -> None:
    monkeypatch.setattr("gnnbench.datasets.store.layout.CHUNK_BYTES", 8)
    for position in range(len(arrays[array])):
        for value in (-2, 5):
            broken = with_value(arrays[array], position, value)
            with pytest.raises(DataError, match=f"{array} has (node|class) {value}"):
                validate("tiny", {**arrays, array: broken}, 3)
