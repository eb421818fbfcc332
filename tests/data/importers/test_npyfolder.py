"""IGB and MAG240M as folders of ``.npy``, written here in their layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnbench.data.importers.common import ImportOptions
from gnnbench.data.importers.npyfolder import import_igb, import_mag240m
from gnnbench.data.store.reader import open_graph
from gnnbench.data.store.writer import GraphWriter
from gnnbench.errors import DataError

EDGES = np.array([[1, 0], [2, 0], [0, 1], [4, 3], [3, 3]])  # source, target
FEATURES = np.arange(10, dtype=np.float16).reshape(5, 2)
NAN = float("nan")


def write(folder: Path, **arrays: np.ndarray) -> Path:
    for name, values in arrays.items():
        path = folder / "processed" / f"{name.replace('0', '/')}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values)
    return folder


def load(importer, path: Path, tmp_path: Path):
    final = tmp_path / "store" / "tiny"
    final.parent.mkdir(exist_ok=True)
    with GraphWriter(final, {}) as out:
        out.finish(name="tiny", **importer(path, out, ImportOptions("tiny", num_classes=3)))
    return open_graph(final)


@pytest.fixture
def igb(tmp_path: Path) -> Path:
    return write(
        tmp_path / "igb",
        paper__cites__paper0edge_index=EDGES,
        paper0node_feat=FEATURES.astype(np.float32),
        paper0node_label_19=np.array([0, 1, 2, 0, 1], np.float32),
    )


@pytest.fixture
def mag(tmp_path: Path) -> Path:
    return write(
        tmp_path / "mag",
        paper___cites___paper0edge_index=EDGES.T,
        paper0node_feat=FEATURES,
        paper0node_label=np.array([0, NAN, 2, 1, NAN], np.float32),
        paper0node_year=np.array([2018, 2010, 2019, 1999, 2020]),
    )


def test_igb(igb: Path, tmp_path: Path) -> None:
    graph = load(import_igb, igb, tmp_path)
    assert graph.indptr.tolist() == [0, 2, 3, 3, 5, 5]
    assert graph.indices.tolist() == [1, 2, 0, 3, 4]
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels.tolist() == [0, 1, 2, 0, 1]
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3], [4]]


def test_mag240m(mag: Path, tmp_path: Path) -> None:
    graph = load(import_mag240m, mag, tmp_path)
    assert graph.indices.tolist() == [1, 2, 0, 3, 4]
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels.tolist() == [0, -1, 2, 1, -1]
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [p.tolist() for p in parts] == [[0, 3], [2], []]


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("paper___cites___paper0edge_index", EDGES, r"\(5, 2\), not \[2, edges\]"),
        ("paper___cites___paper0edge_index", EDGES.T + 1, "edge with node 5"),
        ("paper___cites___paper0edge_index", EDGES.T / 2, "type float64"),
        ("paper0node_label", np.zeros(4), "4 labels for 5 nodes"),
        ("paper0node_label", np.full(5, 0.5), "not a class number"),
        ("paper0node_year", np.zeros(4), "4 years for 5 papers"),
        ("paper0node_feat", np.array([{}], dtype=object), "node_feat.npy is truncated, damaged"),
    ],
)
def test_malformed(mag: Path, tmp_path: Path, name: str, values: np.ndarray, says: str) -> None:
    with pytest.raises(DataError, match=says):
        load(import_mag240m, write(mag, **{name: values}), tmp_path)


def test_a_missing_file(igb: Path, tmp_path: Path) -> None:
    (igb / "processed" / "paper" / "node_label_19.npy").unlink()
    with pytest.raises(DataError, match=r"node_label_19.npy is missing"):
        load(import_igb, igb, tmp_path)
