"""Import of IGB and MAG240M from folders of ``.npy`` files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from own_graph import run_importer

from gnnbench.core.errors import DataError
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.npyfolder import import_igb, import_mag240m
from gnnbench.datasets.manifest import Source

EDGES = np.array([[1, 0], [2, 0], [0, 1], [4, 3], [3, 3]])  # source, target
FEATURES = np.arange(10, dtype=np.float16).reshape(5, 2)
NAN = float("nan")


def write(folder: Path, **arrays: np.ndarray) -> Path:
    for name, values in arrays.items():
        path = folder / "processed" / f"{name.replace('0', '/')}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values)
    return folder


def load(importer, path: Path, tmp_path: Path, **source: bool):
    loaded = Source(loader="igb", paths=[], get="", **source)
    options = ImportOptions("tiny", num_classes=3, source=loaded)
    return run_importer(importer, path, tmp_path, options)


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


def test_igb_is_imported(igb: Path, tmp_path: Path) -> None:
    graph = load(import_igb, igb, tmp_path)
    assert graph.indptr.tolist() == [0, 2, 3, 3, 5, 5]
    assert graph.indices.tolist() == [1, 2, 0, 3, 4]
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels.tolist() == [0, 1, 2, 0, 1]
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3], [4]]


def test_mag240m_is_imported(mag: Path, tmp_path: Path) -> None:
    graph = load(import_mag240m, mag, tmp_path)
    assert graph.indices.tolist() == [1, 2, 0, 3, 4]
    assert graph.features.tolist() == FEATURES.tolist()
    assert graph.labels.tolist() == [0, -1, 2, 1, -1]
    parts = (graph.train_idx, graph.val_idx, graph.test_idx)
    assert [p.tolist() for p in parts] == [[0, 3], [2], []]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("paper___cites___paper0edge_index", EDGES, r"\(5, 2\), not \[2, edges\]"),
        ("paper___cites___paper0edge_index", EDGES.T + 1, "edge with node 5"),
        ("paper___cites___paper0edge_index", EDGES.T / 2, "type float64"),
        ("paper0node_label", np.zeros(4), "node_label.npy has 4 entries, 5 are"),
        ("paper0node_label", np.full(5, 0.5), "not class numbers"),
        ("paper0node_label", np.full(5, np.inf), "node_label.npy has inf for node 0"),
        ("paper0node_label", np.full(5, 1e9), "node_label.npy has 1000000000.0 for node 0"),
        ("paper0node_label", np.full(5, 2**64 - 1, np.uint64), "has 18446744073709551615 for"),
        ("paper0node_label", np.array(["a"] * 5), "node_label.npy has type <U1"),
        ("paper0node_year", np.array(["2018"] * 5), "years in .* have type <U4"),
        ("paper0node_year", np.array(["2018"] * 5, "M8[Y]"), "years in .* have type datetime64"),
        ("paper0node_feat", np.zeros((5, 0)), r"node_feat.npy has .* shape \(5, 0\)"),
        ("paper0node_feat", np.array([["a"]] * 5), "node_feat.npy has type <U1"),
        ("paper0node_year", np.zeros(4), "4 years for 5 papers"),
        ("paper0node_feat", np.array([{}], dtype=object), "node_feat.npy is truncated, damaged"),
    ],
)
def test_malformed_folders_are_refused(
    mag: Path, tmp_path: Path, name: str, values: np.ndarray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load(import_mag240m, write(mag, **{name: values}), tmp_path)


def test_missing_file_is_reported(igb: Path, tmp_path: Path) -> None:
    (igb / "processed" / "paper" / "node_label_19.npy").unlink()
    with pytest.raises(DataError, match=r"node_label_19.npy is missing"):
        load(import_igb, igb, tmp_path)


def test_manifest_may_drop_self_loops(igb, mag, tmp_path: Path) -> None:
    for importer, folder in ((import_igb, igb), (import_mag240m, mag)):
        graph = load(importer, folder, tmp_path, drop_self_loops=True)
        assert graph.indptr.tolist() == [0, 2, 3, 3, 4, 4]
        assert graph.indices.tolist() == [1, 2, 0, 4]
        assert graph.meta["notes"] == [
            "edges listed: 5; stored: 4",
            "edges from a node to itself: 1, left out",
        ]
