"""The ``.npz`` importer: accepted arrays, seeded defaults, and malformed files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.prepare import load_dataset, prepare
from gnnbench.datasets.store.layout import ARRAYS
from gnnbench.datasets.store.reader import open_graph, verify

CSR = {
    "feat_kind": np.array("csr"),
    "features": None,
    "feat_data": np.array([1, 2, 3.5, 4], np.float16),
    "feat_indices": np.array([0, 6, 3, 3], np.int32),
    "feat_indptr": np.array([0, 2, 2, 3, 3, 4], np.int64),
    "feat_dim": np.int64(7),
}


@pytest.mark.parametrize("compressed", [True, False])
def test_dense_features_are_imported(root: Path, make_npz, arrays, compressed: bool) -> None:
    graph = load_dataset(str(make_npz(compressed=compressed)))
    for key in ARRAYS:
        assert np.array_equal(getattr(graph, key).numpy(), arrays[key]), key
    assert graph.meta["features"] == "source"
    assert graph.meta["licence"] == "CC0"
    assert graph.meta["source"] == "made by hand"
    assert graph.num_classes == 3


def test_csr_features_are_imported(root: Path, make_npz) -> None:
    graph = load_dataset(str(make_npz(**CSR)))
    assert graph.features.tolist() == [
        [1, 0, 0, 0, 0, 0, 2],
        [0] * 7,
        [0, 0, 0, 3.5, 0, 0, 0],
        [0] * 7,
        [0, 0, 0, 4, 0, 0, 0],
    ]


def test_weights_are_stored_or_refused(root: Path, make_npz, arrays) -> None:
    weights = np.linspace(0, 1, len(arrays["indices"]))
    graph = load_dataset(str(make_npz("a.npz", weights=weights)))
    assert graph.weights is not None
    assert np.array_equal(graph.weights.numpy(), weights.astype(np.float32))
    assert load_dataset(str(make_npz("b.npz"))).weights is None
    for name, wrong, message in (
        ("c.npz", weights[1:], "'weights' in .* shape"),
        ("d.npz", weights - 1, "'weights' in .* has -1.0 for edge 0"),
        ("e.npz", np.where(weights > 0, np.nan, 0), "'weights' in .* has nan for edge 1"),
        ("f.npz", weights.astype(str), "weights"),
    ):
        with pytest.raises(DataError, match=message):
            load_dataset(str(make_npz(name, weights=wrong)))


def test_kind_of_features_is_detected(root: Path, make_npz) -> None:
    dense = load_dataset(str(make_npz("a.npz", feat_kind=None)))
    assert dense.feature_dim == 3
    sparse = load_dataset(str(make_npz("b.npz", **{**CSR, "feat_kind": None, "feat_dim": None})))
    assert sparse.feature_dim == 7


def test_missing_features_and_labels_are_seeded(root: Path, make_npz) -> None:
    none = {"features": None, "feat_kind": np.array("none")}
    path = str(make_npz("a.npz", **none))
    first = load_dataset(path)
    assert first.meta["features"] == "seeded"
    assert first.meta["labels"] == "source"
    assert first.features.shape == (5, 64)
    again = load_dataset(path, root=root / "other")
    assert np.array_equal(first.features, again.features)
    other = load_dataset(path, seed=1)
    assert other.path != first.path
    assert not np.array_equal(first.features, other.features)

    minus = np.full(5, -1, np.int16)
    for change in ({"labels": None}, {"labels": minus, "num_classes": np.int64(0)}):
        graph = load_dataset(str(make_npz(f"b{len(change)}.npz", **none, **change)))
        assert graph.meta["labels"] == "seeded"
        assert 0 <= int(graph.labels.min()) <= int(graph.labels.max()) < graph.num_classes


def test_missing_split_is_random(root: Path, make_npz) -> None:
    labels = np.zeros(5, np.int16)
    missing = {"train_idx": None, "val_idx": None, "test_idx": None, "labels": labels}
    graph = load_dataset(str(make_npz(**missing)))
    assert graph.meta["split"] == "random 60/20/20, seed 0"
    parts = [graph.train_idx, graph.val_idx, graph.test_idx]
    assert [len(p) for p in parts] == [3, 1, 1]
    assert sorted(int(v) for p in parts for v in p) == [0, 1, 2, 3, 4]


def changed(key: str, position, value):
    def change(values):
        array = values[key].copy()
        array[position] = value
        return {key: array}

    return change


MALFORMED = [
    (changed("indptr", 2, 9), "indptr decreases at position 3"),
    (changed("indices", 3, 5), "indices has node 5"),
    (changed("indices", 3, -1), "indices has node -1"),
    (changed("features", (1, 1), np.nan), "'features' in .* has nan for node 1, in column 1"),
    (changed("labels", 0, 3), "labels has class 3 for node 0"),
    (changed("train_idx", 0, 7), "'train_idx' in .* has node 7"),
    (lambda _: {"train_idx": np.empty(0, np.int64)}, "the training set is empty"),
    (lambda _: {"indptr": None}, "has no array 'indptr'"),
    (lambda _: {"indices": None}, "has no array 'indices'"),
    (lambda _: {"val_idx": None}, "has no array 'val_idx'"),
    (lambda v: {"indptr": v["indptr"].astype(float)}, "'indptr' .* type float64"),
    (lambda v: {"indices": v["indices"].astype(float)}, "'indices' .* type float64"),
    (lambda v: {"indices": v["indices"].reshape(1, -1)}, r"shape \(1, 7\)"),
    (lambda v: {"indices": v["indices"][:-1]}, "there are 6 indices"),
    (lambda v: {"labels": v["labels"][:-1]}, "'labels' .* has 4 entries, 5 are expected"),
    (lambda v: {"labels": v["labels"] / 2}, "'labels' .* values that are not class numbers"),
    (lambda v: {"labels": v["labels"].astype(str)}, "'labels' .* type <U"),
    (lambda v: {"features": v["features"][:-1]}, r"features .* shape \(4, 3\)"),
    (lambda v: {"features": v["features"].ravel()}, "features .* has shape"),
    (lambda v: {"features": v["features"].astype(str)}, "'features' .* numbers in two dim"),
    (lambda v: {"features": v["features"][:, :0]}, "'features' .* numbers in two dim"),
    (lambda _: {"num_nodes": np.int64(6)}, "indptr .* 6 entries for 6 nodes"),
    (lambda _: {"num_nodes": np.arange(2)}, "'num_nodes' .* single value"),
    (lambda _: {"feat_kind": np.array("hashed")}, "feat_kind .* 'hashed'"),
    (lambda _: {"labels": np.array([{}] * 5, dtype=object)}, "never loaded"),
    (lambda _: {**CSR, "feat_indices": np.array([0, 7, 3, 3])}, "sparse features .* malformed"),
    (lambda _: {**CSR, "feat_indptr": np.array([0, 2, 1, 3, 3, 4])}, "sparse features"),
    (lambda _: {**CSR, "feat_data": np.ones(3)}, "sparse features"),
    (lambda _: {**CSR, "feat_data": np.array(["a"] * 4)}, "feat_data .* type <U1"),
    (
        lambda _: {**CSR, "feat_data": np.array([1, 2, np.nan, 1])},
        "'feat_data' in .* has nan for node 2, in column 3",
    ),
]


@pytest.mark.parametrize(("change", "message"), MALFORMED)
def test_malformed_npz_files_are_refused(
    root: Path, make_npz, arrays, change, message: str
) -> None:
    path = make_npz(**change(arrays))
    with pytest.raises(DataError, match=message) as caught:
        prepare(str(path))
    text = str(caught.value)
    assert caught.value.exit_code == 6
    assert "tiny.npz" in text
    assert "\n" not in text
    assert [p.name for p in root.iterdir() if not p.name.endswith(".lock")] == []


@pytest.mark.parametrize("keep", [0, 1, 100, -1, -100])
def test_truncated_npz_files_are_refused(root: Path, make_npz, keep: int) -> None:
    path = make_npz()
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"tiny.npz is truncated, damaged or not what it should"):
        prepare(str(path))


@pytest.mark.parametrize("compressed", [True, False])
def test_flipped_bit_is_refused_or_harmless(root: Path, make_npz, arrays, compressed: bool) -> None:
    """A bit is harmless in a byte without data (a date, a file mode)."""
    path = make_npz(compressed=compressed)
    good = path.read_bytes()
    rng = np.random.default_rng(5)
    refused = 0
    for position in rng.integers(0, len(good), 36).tolist():
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        try:
            graph = load_dataset(str(path), root=root / str(position))
        except (DataError, UsageError) as error:  # a damaged 'rows' is a usage error
            assert "\n" not in str(error)
            refused += 1
            continue
        for key in ("indptr", "indices"):
            assert np.array_equal(getattr(graph, key).numpy(), arrays[key]), (key, position)
        if graph.meta["features"] == "source":
            assert np.array_equal(graph.features.numpy(), arrays["features"]), position
    assert refused > 14


@settings(max_examples=12)
@given(data=st.data(), num_nodes=st.integers(1, 9), width=st.integers(1, 5))
def test_npz_round_trip(data, num_nodes: int, width: int) -> None:
    degrees = data.draw(hnp.arrays(np.int64, num_nodes, elements=st.integers(0, 6)))
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    ids = st.integers(0, num_nodes - 1)
    indices = data.draw(hnp.arrays(np.int32, int(indptr[-1]), elements=ids))
    floats = st.floats(-1000, 1000, width=16)
    features = data.draw(hnp.arrays(np.float16, (num_nodes, width), elements=floats))
    labels = data.draw(hnp.arrays(np.int16, num_nodes, elements=st.integers(0, 4)))
    train = data.draw(st.sets(ids, min_size=1))
    values = {
        "indptr": indptr,
        "indices": indices,
        "rows": np.array("targets"),
        "features": features,
        "labels": labels,
        "train_idx": np.array(sorted(train, reverse=True)),
        "val_idx": np.empty(0, np.int64),
        "test_idx": np.empty(0, np.int32),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.npz"
        np.savez(path, **values)
        stored = prepare(str(path), root=Path(folder) / "root")
        graph = open_graph(stored)
        assert graph.indptr.tolist() == indptr.tolist()
        assert graph.indices.tolist() == indices.tolist()
        assert np.array_equal(graph.features.numpy(), features.astype(np.float32))
        assert graph.labels.tolist() == labels.tolist()
        assert graph.train_idx.tolist() == sorted(train)
        assert verify(stored).ok
